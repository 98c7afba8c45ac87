/**
 * Acts of the operator on the database of DATABASE_URL, beside the running service:
 * `node src/server/operator.ts voice suspend <environment id>`, `invite create --uses 10`, or
 * `money credit <developer> <cents>`.
 */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Config, Console, DateTime, Effect, Layer, Option } from "effect"
import { SecureRandom } from "effect/crypto"
import { Argument, Command } from "effect/cli"
import { SqlClient } from "effect/sql"
import { newId } from "#rpc/ids"
import { AuditRepository } from "#sql/audit"
import { poolLayer } from "#sql/database"
import { DeveloperRepository } from "#sql/developers/repository"
import { LedgerRepository } from "#sql/money/ledger"
import { MeteringRepository } from "#sql/money/usage"
import { VoiceRepository } from "#sql/voice"
import { InviteRepository } from "#sql/developers/invites"
import { Ledger } from "./features/money/ledger.ts"
import { OperatorError } from "./operator-error.ts"
import { inviteCommand } from "./operator-invites.ts"
import { moneyCommand } from "./operator-money.ts"
import { Invalidation } from "./platform/invalidation.ts"
import { failStart } from "./start-error.ts"

const environment = Argument.String("environment").pipe(
  Argument.withDescription("The id of the environment: env_...")
)

/** Suspends or resumes voice, with an audit entry; takes effect on all runners within a second. */
const setVoice = Effect.fnUntraced(function* (environmentId: string, suspended: boolean) {
  const audit = yield* AuditRepository
  const invalidation = yield* Invalidation
  const sql = yield* SqlClient.SqlClient
  const voice = yield* VoiceRepository
  const change = Effect.gen(function* () {
    const found = yield* voice.setSuspended({ environmentId, suspended })
    if (Option.isNone(found)) {
      return yield* new OperatorError({ message: `There is no environment ${environmentId}.` })
    }
    const { name, projectId } = found.value
    yield* audit.insert({
      id: yield* newId.auditEntry,
      at: yield* DateTime.now,
      projectId,
      env: name,
      actorKind: "system",
      actorId: "operator",
      actorName: "operator",
      address: null,
      action: suspended ? "voice.suspend" : "voice.resume",
      targetKind: "environment",
      targetId: environmentId,
      details: {}
    })
    yield* invalidation.publish({ kind: "config", id: environmentId })
  })
  yield* sql.withTransaction(change)
  yield* Console.log(`Voice of ${environmentId} is ${suspended ? "suspended" : "resumed"}.`)
})

const voiceCommand = Command.make("voice").pipe(
  Command.withDescription("Suspend or resume voice calls of an environment"),
  Command.withSubcommands([
    Command.make("suspend", { environment }, (input) => setVoice(input.environment, true)),
    Command.make("resume", { environment }, (input) => setVoice(input.environment, false))
  ])
)

const operator = Command.make("operator").pipe(
  Command.withDescription("Acts of the operator, beside DATABASE_URL"),
  Command.withSubcommands([inviteCommand, moneyCommand, voiceCommand])
)

Effect.gen(function* () {
  const url = yield* Config.Redacted("DATABASE_URL")
  const database = poolLayer({ url, connections: 2 })
  yield* Command.run(operator, { version: "1" }).pipe(
    Effect.provide(
      Layer.mergeAll(
        Ledger.layer.pipe(Layer.provide(LedgerRepository.layer)),
        AuditRepository.layer,
        InviteRepository.layer,
        DeveloperRepository.layer,
        MeteringRepository.layer,
        VoiceRepository.layer,
        Invalidation.layer
      ).pipe(Layer.provideMerge(Layer.merge(SecureRandom.layerWebCrypto, database)))
    )
  )
}).pipe(
  Effect.catchTag("ConfigError", () => failStart("DATABASE_URL must name the database.")),
  Effect.catchTag(["CreditRefused", "OperatorError"], ({ message }) => failStart(message)),
  Effect.scoped,
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain
)
