package acp

import "github.com/acp-agent/acp-agent/acp/internal/turns"

// The queues of an agent keep the requests of its sessions in order.
type (
	queue  = turns.Queue[*session]
	ticket = turns.Ticket[*session]
)
