-- Drives agentic.nvim in a headless Neovim as a person would; see editors_test.go.
local steps = vim.json.decode(table.concat(vim.fn.readfile(vim.env.EDITOR_STEPS), "\n"))

local function await(what, done)
  if not vim.wait(60000, done, 20) then
    error("waited in vain for " .. what)
  end
end

local function run()
  for _, dir in ipairs(steps.plugins) do
    vim.opt.runtimepath:prepend(dir)
  end
  dofile(steps.snippet)

  local agentic = require("agentic")
  local ended = 0
  agentic.setup({ hooks = {
    on_response_complete = function() ended = ended + 1 end,
    on_request_permission = function()
      vim.defer_fn(function()
        local chat = require("agentic.session_registry").sessions[vim.api.nvim_get_current_tabpage()].widget.buf_nrs.chat
        vim.api.nvim_buf_call(chat, function() vim.cmd.normal("1") end)
      end, 500)
    end,
  } })
  agentic.open({ auto_add_to_context = false })
  local session = require("agentic.session_registry").sessions[vim.api.nvim_get_current_tabpage()]
  await("the session", function() return session.session_id end)
  if steps.resume then
    local new = session.session_id
    vim.ui.select = function(items, _, choose)
      for i, item in ipairs(items) do
        if item.session_id ~= new then
          return choose(item, i)
        end
      end
    end
    agentic.restore_session()
    await("the session to be loaded", function() return session.session_id and session.session_id ~= new end)
  end
  for i, prompt in ipairs(steps.prompts) do
    vim.api.nvim_buf_set_lines(session.widget.buf_nrs.input, 0, -1, false, vim.split(prompt, "\n"))
    session.widget:_submit_input()
    await("the end of a turn", function() return ended >= i end)
  end
end

local ok, problem = xpcall(run, debug.traceback)
if not ok then
  io.stderr:write(problem, "\n")
end
vim.cmd(ok and "quitall!" or "cquit!")
