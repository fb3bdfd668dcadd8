;;; -*- lexical-binding: t -*-
;; Drives agent-shell in a batch Emacs as a person would; see editors_test.go.
(require 'json)
(require 'map)

(defun await (what done)
  (let ((end (+ (float-time) 60)))
    (while (not (funcall done))
      (when (> (float-time) end)
        (error "Waited in vain for %s" what))
      (accept-process-output nil 0.02))))

(let* ((steps (with-temp-buffer
                (insert-file-contents (getenv "EDITOR_STEPS"))
                (json-parse-buffer :object-type 'alist :array-type 'list :false-object nil)))
       (ended 0)
       (ready nil))
  (dolist (dir (map-elt steps 'plugins))
    (add-to-list 'load-path dir))
  (require 'agent-shell)
  (load (map-elt steps 'snippet) nil t t)
  (setq agent-shell-permission-responder-function #'agent-shell-permission-allow-always
        agent-shell-session-strategy (if (map-elt steps 'resume) 'latest 'new))
  (add-hook 'agent-shell-mode-hook
            (lambda ()
              (agent-shell-subscribe-to
               :shell-buffer (current-buffer)
               :on-event (lambda (event)
                           (pcase (map-elt event :event)
                             ('prompt-ready (setq ready t))
                             ('turn-complete (setq ended (1+ ended))))))))
  (let ((buffer (agent-shell-start :config (agent-shell-opencode-make-agent-config)))
        (sent 0))
    (await "the session" (lambda () ready))
    (dolist (prompt (map-elt steps 'prompts))
      (agent-shell-insert :text prompt :submit t :no-focus t :shell-buffer buffer)
      (setq sent (1+ sent))
      (await "the end of a turn" (lambda () (>= ended sent))))))
