// Package postgres keeps sessions in a PostgreSQL database that several servers share.
//
//	store, err := postgres.New(postgres.Options{Address: "postgres://user@host/database"})
//	defer store.Close()
//	lease, err := store.For("ann").Create(ctx, session)
//
// The tables are in the schema acp_agent, or in that which the address names as search_path. The
// first call creates them, so the user may create a schema in the database, or owns it. The user
// should not be a superuser, to whom row-level security does not apply.
//
// A transaction that may change other sessions of its agent locks the agent's row first, and then
// the row of its session. Other writes lock their session's row only. A transaction that fails
// because of others is repeated. The time is that of the database, so that the clocks of servers
// need not agree.
//
// Everything that was acknowledged survives a crash of the server or the program, as far as the
// database is configured so (synchronous_commit). If the connection is lost while a transaction is
// committed, the error says that it may have been stored. PostgreSQL removes what was purged from
// its files when it vacuums them. Its write-ahead log, replicas and backups may contain it longer.
package postgres
