class AcpAgent < Formula
  desc "Multi-root sessions for coding agents"
  homepage "{{.Repository}}"
  version "{{.Version}}"
  license "{{.Licence}}"
{{range .Platforms}}
  on_{{.OS}} do
    on_{{.CPU}} do
      url "{{.URL}}"
      sha256 "{{.SHA256}}"
    end
  end
{{end}}
  def install
    bin.install "acp-agent"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/acp-agent.bash" => "acp-agent"
    zsh_completion.install "completions/_acp-agent"
    fish_completion.install "completions/acp-agent.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/acp-agent version")
  end
end
