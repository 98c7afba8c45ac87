/**
 * Tables of a backup, by the migration that creates each. A backup that finds fewer tables has not found the
 * database of the service: it fails. A new migration with a table adds it here.
 */
const tables: Readonly<Record<number, string>> = {
  1: "developers projects environments keys configs signing_keys",
  3: "players sessions",
  5: "channels",
  6: "saves save_counts",
  7: "stats stat_signals webhook_secrets",
  8: "idempotency_keys",
  9: "developer_sessions developer_identities invite_uses project_members player_days daily_actives",
  10: "sanctions deleted_players",
  11: "audit",
  12: "provider_credentials",
  13: "identities single_use_codes",
  14: "mails",
  15: "sign_in_steps",
  22: "setup_token",
  24: "sweep_claims",
  27: "share_links share_days share_salts share_visitors",
  29: "deployments deployment_files hosted_apps blobs",
  30: "ledger_transactions ledger_postings",
  31: "developer_flows",
  32: "hosted_domains",
  33: "invite_codes invite_redemptions developer_email_links",
  34: "checkouts payment_returns payment_reconciliation usage_counters usage_batches usage_periods",
  35: "functions function_deployments function_secrets function_crons function_deliveries function_logs function_usage",
  36: "function_data function_snapshots function_snapshot_objects",
  38: "function_hosts",
  39: "request_minutes",
  40: "sign_in_links"
}

/** The tables that a database at this migration has, in order of their names. */
export const tablesAt = (migration: number): ReadonlyArray<string> =>
  Object.entries(tables)
    .filter(([id]) => Number(id) <= migration)
    .flatMap(([, names]) => names.split(" "))
    .toSorted()
