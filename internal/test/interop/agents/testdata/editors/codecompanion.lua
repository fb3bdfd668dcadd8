-- Drives CodeCompanion in a headless Neovim as a person would; see editors_test.go.
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
  vim.cmd.runtime("plugin/codecompanion.lua")

  local ended, restored = 0, false
  local function on(event, callback)
    vim.api.nvim_create_autocmd("User", { pattern = "CodeCompanion" .. event, callback = callback })
  end
  on("ChatDone", function() ended = ended + 1 end)
  on("ACPChatRestored", function() restored = true end)
  on("ToolApprovalRequested", function(args)
    local key = require("codecompanion.config").interactions.shared.keymaps.accept_change.modes.n
    vim.defer_fn(function()
      vim.api.nvim_buf_call(args.data.bufnr, function() vim.cmd.normal(key) end)
    end, 100)
  end)

  vim.cmd("CodeCompanionChat adapter=opencode")
  local chat = require("codecompanion").last_chat()
  await("the session", function() return chat.acp_connection and chat.acp_connection:is_connected() end)
  if steps.resume then
    local new = chat.acp_connection.session_id
    vim.ui.select = function(items, _, choose)
      for i, item in ipairs(items) do
        if not item:find(new, 1, true) then
          return choose(item, i)
        end
      end
    end
    local command = { label = "/resume", config = require("codecompanion.config").interactions.chat.slash_commands.resume }
    -- In a coroutine: where LuaJIT is built with Lua 5.2's coroutine.running, the plugin believes it is in one and yields.
    require("codecompanion.utils.async").sync(function()
      require("codecompanion.interactions.chat.slash_commands").new():execute(command, chat)
    end)()
    await("the session to be loaded", function() return restored end)
  end
  await("the agent's commands", function()
    return #require("codecompanion.interactions.chat.acp.commands").get_commands_for_session(chat.acp_connection.session_id) > 0
  end)
  for i, prompt in ipairs(steps.prompts) do
    local last = vim.api.nvim_buf_line_count(chat.bufnr)
    vim.api.nvim_buf_set_lines(chat.bufnr, last - 1, last, false, vim.split(prompt, "\n"))
    chat:submit()
    await("the end of a turn", function() return ended >= i end)
  end
end

local ok, problem = xpcall(run, debug.traceback)
if not ok then
  io.stderr:write(problem, "\n")
end
vim.cmd(ok and "quitall!" or "cquit!")
