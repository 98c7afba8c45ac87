/**
 * The operator's commands for developers: `signups close`, `signups open` and `signups status`, and
 * `developer reset-password` for one who cannot sign in any more.
 */
import { Console, DateTime, Effect, Option } from "effect"
import { Argument, Command } from "effect/cli"
import { SqlClient } from "effect/sql"
import type { AuditAction } from "#rpc/audit"
import { ClosedSignups } from "#sql/developers/closed-signups"
import { DeveloperRepository } from "#sql/developers/repository"
import { OperatorError } from "./error.ts"
import { recordOperatorAct } from "../features/audit/operator.ts"
import { findDeveloper } from "../platform/find-developer.ts"
import { Passwords } from "../platform/passwords.ts"
import { randomSecret } from "../platform/secrets.ts"

const closedText = "Sign-up is closed, whatever SVC_SIGNUPS says."
const openText = "Sign-up follows SVC_SIGNUPS."

/** Changes whether sign-up is closed, with an audit entry if that changes something. */
const setSignups = Effect.fnUntraced(function* (
  action: AuditAction,
  change: (signups: ClosedSignups["Service"]) => Effect.Effect<boolean>,
  text: string
) {
  const signups = yield* ClosedSignups
  const sql = yield* SqlClient.SqlClient
  const changed = yield* sql.withTransaction(
    Effect.tap(change(signups), (isChange) =>
      isChange
        ? recordOperatorAct({ action, target: { kind: "deployment", id: "signups" } })
        : Effect.void
    )
  )
  yield* Console.log(changed ? text : `${text} Nothing was changed.`)
})

const status = Effect.gen(function* () {
  const { isClosed } = yield* ClosedSignups
  yield* Console.log((yield* isClosed) ? closedText : openText)
})

export const signupsCommand = Command.make("signups").pipe(
  Command.withDescription(
    "Close the sign-up of developers at once, and leave it to SVC_SIGNUPS again"
  ),
  Command.withSubcommands([
    Command.make("close", {}, () =>
      Effect.flatMap(DateTime.now, (now) =>
        setSignups("signups.close", ({ close }) => close(now), closedText)
      )
    ).pipe(Command.withDescription("Refuse every new account of a developer")),
    Command.make("open", {}, () => setSignups("signups.open", ({ open }) => open, openText)).pipe(
      Command.withDescription("Leave sign-up to SVC_SIGNUPS again")
    ),
    Command.make("status", {}, () => status).pipe(
      Command.withDescription("Say whether sign-up is closed")
    )
  ])
)

/** Sets a new password and ends all sessions of the developer. Returns the password. */
const resetPassword = Effect.fnUntraced(function* (name: string) {
  const repository = yield* DeveloperRepository
  const passwords = yield* Passwords
  const sql = yield* SqlClient.SqlClient
  const found = yield* findDeveloper(name)
  if (Option.isNone(found)) {
    return yield* new OperatorError({ message: `There is no developer ${name}.` })
  }
  const { id: developerId, passwordHash: from } = found.value
  const password = yield* randomSecret
  const to = yield* passwords.hash(password)
  const change = Effect.gen(function* () {
    if (!(yield* repository.replacePassword({ developerId, from, to }))) {
      const message =
        "The developer has changed the password at this moment. Run it again if needed."
      return yield* new OperatorError({ message })
    }
    yield* repository.endSessions(developerId)
    const target = { kind: "developer", id: developerId }
    yield* recordOperatorAct({ action: "developer.resetPassword", target })
  })
  yield* sql.withTransaction(change)
  return password
})

export const developerCommand = Command.make("developer").pipe(
  Command.withDescription("Let a developer in who cannot sign in any more"),
  Command.withSubcommands([
    Command.make(
      "reset-password",
      {
        developer: Argument.String("developer").pipe(
          Argument.withDescription("The id or email address of the developer")
        )
      },
      Effect.fnUntraced(function* ({ developer }) {
        const password = yield* resetPassword(developer)
        yield* Console.error(
          `${developer} is signed out everywhere. The new password, printed only this once:`
        )
        yield* Console.log(password)
      })
    ).pipe(
      Command.withDescription("Set a new random password, and end all sessions of the developer")
    )
  ])
)
