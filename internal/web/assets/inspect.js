// The page of acp-agent inspect: what is stored of sessions, and traces.
import { showViews } from "./views.js";
import { showSessions } from "./sessions.js";
import { showConversation } from "./conversation.js";
import { showTraces } from "./traces.js";
import { showTrace } from "./timeline.js";

showViews({ "": showSessions, session: showConversation, traces: showTraces, trace: showTrace });
