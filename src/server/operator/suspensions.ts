/** `operator/main.ts voice` and `operator/main.ts functions`: suspends and resumes them in an environment. */
import { Console, Effect, Option } from "effect"
import { Argument, Command } from "effect/cli"
import { SqlClient } from "effect/sql"
import type { AuditAction } from "#rpc/audit"
import type { EnvironmentName } from "#rpc/auth"
import type { ProjectId } from "#rpc/ids"
import { FunctionsRepository } from "#sql/functions/settings"
import { VoiceRepository } from "#sql/voice"
import { recordOperatorAct } from "../features/audit/operator.ts"
import { OperatorError } from "./error.ts"
import { Invalidation } from "../platform/invalidation.ts"

const environment = Argument.String("environment").pipe(
  Argument.withDescription("The id of the environment: env_...")
)

/** What the operator suspends: its name in the audit log, and the change in the database. */
interface Suspendable {
  readonly title: string
  /** The change that all runners hear of. */
  readonly kind: "config" | "functions"
  readonly actions: { readonly suspend: AuditAction; readonly resume: AuditAction }
  readonly set: (
    environmentId: string,
    suspended: boolean
  ) => Effect.Effect<
    Option.Option<{ readonly projectId: ProjectId; readonly name: EnvironmentName }>,
    never,
    VoiceRepository | FunctionsRepository
  >
}

const voice: Suspendable = {
  title: "Voice",
  kind: "config",
  actions: { suspend: "voice.suspend", resume: "voice.resume" },
  set: (environmentId, suspended) =>
    Effect.flatMap(VoiceRepository, (repository) =>
      repository.setSuspended({ environmentId, suspended })
    )
}

const functions: Suspendable = {
  title: "Functions",
  kind: "functions",
  actions: { suspend: "functions.suspend", resume: "functions.resume" },
  set: (environmentId, suspended) =>
    Effect.flatMap(FunctionsRepository, (repository) =>
      repository.setSuspended({ environmentId, reason: suspended ? "abuse" : null })
    )
}

/** Suspends or resumes, with an audit entry; takes effect on all runners within a second. */
const setSuspended = Effect.fnUntraced(function* (
  { actions, kind, set, title }: Suspendable,
  environmentId: string,
  suspended: boolean
) {
  const invalidation = yield* Invalidation
  const sql = yield* SqlClient.SqlClient
  const change = Effect.gen(function* () {
    const found = yield* set(environmentId, suspended)
    if (Option.isNone(found)) {
      return yield* new OperatorError({ message: `There is no environment ${environmentId}.` })
    }
    yield* recordOperatorAct(
      {
        action: suspended ? actions.suspend : actions.resume,
        target: { kind: "environment", id: environmentId }
      },
      found.value
    )
    yield* invalidation.publish({ kind, id: environmentId })
  })
  yield* sql.withTransaction(change)
  yield* Console.log(`${title} of ${environmentId} is ${suspended ? "suspended" : "resumed"}.`)
})

const suspensionCommand = (name: string, description: string, what: Suspendable) =>
  Command.make(name).pipe(
    Command.withDescription(description),
    Command.withSubcommands([
      Command.make("suspend", { environment }, (input) =>
        setSuspended(what, input.environment, true)
      ).pipe(Command.withDescription("Stop them on all runners within a second")),
      Command.make("resume", { environment }, (input) =>
        setSuspended(what, input.environment, false)
      ).pipe(Command.withDescription("Let them run again"))
    ])
  )

/** The commands. */
export const suspensionCommands = [
  suspensionCommand("voice", "Suspend or resume voice calls of an environment", voice),
  suspensionCommand("functions", "Suspend or resume the functions of an environment", functions)
] as const
