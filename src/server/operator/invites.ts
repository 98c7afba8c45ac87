/** The operator's commands for invite codes: `invite create`, `invite list` and `invite revoke`. */
import { Console, DateTime, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { SqlClient } from "effect/sql"
import { newId } from "#rpc/ids"
import { type InviteCodeRow, InviteRepository } from "#sql/developers/invites"
import { OperatorError } from "./error.ts"
import { recordOperatorAct } from "../features/audit/operator.ts"
import { randomSecret, sha256 } from "../platform/secrets.ts"

/** Accounts that one invite code lets in. */
const inviteUsesMax = 1_000_000

const create = Effect.fnUntraced(function* (uses: number, note: string) {
  if (uses < 1 || uses > inviteUsesMax) {
    const message = `Expected --uses from 1 to ${inviteUsesMax}.`
    return yield* new OperatorError({ message })
  }
  const invites = yield* InviteRepository
  const sql = yield* SqlClient.SqlClient
  const code = yield* randomSecret
  const id = yield* newId.invite
  const createdAt = yield* DateTime.now
  const insert = invites.insert({ id, codeHash: sha256(code), uses, note, createdAt })
  const target = { kind: "invite", id }
  const entry = recordOperatorAct({ action: "invite.create", target, details: { uses, note } })
  yield* sql.withTransaction(Effect.andThen(insert, entry))
  yield* Console.error(`Created ${id} for ${uses} sign-ups. The code, printed only this once:`)
  yield* Console.log(code)
})

const stateOf = ({ revokedAt, used, uses }: InviteCodeRow): string =>
  revokedAt !== null ? "revoked" : used === uses ? "spent" : "open"

const list = Effect.gen(function* () {
  const invites = yield* InviteRepository
  for (const row of yield* invites.list) {
    const createdAt = DateTime.formatIso(row.createdAt)
    const columns = [row.id, `${row.used}/${row.uses}`, stateOf(row), createdAt, row.note]
    yield* Console.log(columns.join("  ").trimEnd())
  }
})

const revoke = Effect.fnUntraced(function* (id: string) {
  const invites = yield* InviteRepository
  const sql = yield* SqlClient.SqlClient
  const change = Effect.gen(function* () {
    const found = yield* invites.revoke({ id, revokedAt: yield* DateTime.now })
    if (Option.isNone(found)) {
      return yield* new OperatorError({ message: `There is no invite code ${id}.` })
    }
    const { used } = found.value
    const target = { kind: "invite", id }
    yield* recordOperatorAct({ action: "invite.revoke", target, details: { used } })
  })
  yield* sql.withTransaction(change)
  yield* Console.log(`${id} is revoked.`)
})

export const inviteCommand = Command.make("invite").pipe(
  Command.withDescription("Make, list and revoke invite codes for developers"),
  Command.withSubcommands([
    Command.make(
      "create",
      {
        uses: Flag.Int("uses").pipe(
          Flag.withDefault(1),
          Flag.withDescription("How many accounts the code lets in")
        ),
        note: Flag.String("note").pipe(
          Flag.withDefault(""),
          Flag.withDescription("Whom the code is for")
        )
      },
      ({ note, uses }) => create(uses, note)
    ).pipe(Command.withDescription("Make a code and print it once")),
    Command.make("list", {}, () => list).pipe(
      Command.withDescription("List the codes with their uses, without their text")
    ),
    Command.make(
      "revoke",
      {
        id: Argument.String("id").pipe(Argument.withDescription("The id of the code: inv_..."))
      },
      ({ id }) => revoke(id)
    ).pipe(Command.withDescription("Refuse a code from now on"))
  ])
)
