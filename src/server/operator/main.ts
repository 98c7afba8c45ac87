/**
 * Acts of the operator on the database of DATABASE_URL, beside the running service:
 * `node src/server/operator/main.ts voice suspend <environment id>`, the same with `functions`,
 * `invite create --uses 10`, `money credit <developer> <cents>`, or `runners`.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Config, Effect, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { Command } from "effect/cli"
import { AuditRepository } from "#sql/audit"
import { poolLayer } from "#sql/database"
import { DeveloperRepository } from "#sql/developers/repository"
import { NodeRepository } from "#sql/live/nodes"
import { LedgerRepository } from "#sql/money/ledger"
import { MeteringRepository } from "#sql/money/usage"
import { VoiceRepository } from "#sql/voice"
import { FunctionsRepository } from "#sql/functions/settings"
import { InviteRepository } from "#sql/developers/invites"
import { Ledger } from "../features/money/ledger.ts"
import { inviteCommand } from "./invites.ts"
import { moneyCommand } from "./money.ts"
import { runnersCommand } from "./runners.ts"
import { suspensionCommands } from "./suspensions.ts"
import { Invalidation } from "../platform/invalidation.ts"
import { failCommand } from "../start-error.ts"

const operator = Command.make("operator").pipe(
  Command.withDescription("Acts of the operator, beside DATABASE_URL"),
  Command.withSubcommands([inviteCommand, moneyCommand, runnersCommand, ...suspensionCommands])
)

Effect.gen(function* () {
  const url = yield* Config.Redacted("DATABASE_URL")
  const database = poolLayer({ url, connections: 2 })
  yield* Command.run(operator, { version: "1" }).pipe(
    Effect.provide(
      Layer.mergeAll(
        Ledger.layer.pipe(Layer.provideMerge(LedgerRepository.layer)),
        AuditRepository.layer,
        FunctionsRepository.layer,
        InviteRepository.layer,
        DeveloperRepository.layer,
        MeteringRepository.layer,
        NodeRepository.layer,
        VoiceRepository.layer,
        Invalidation.layer
      ).pipe(Layer.provideMerge(Layer.merge(SecureRandom.layerWebCrypto, database)))
    )
  )
}).pipe(
  Effect.catchTag("ConfigError", () => failCommand("DATABASE_URL must name the database.")),
  Effect.catchTag(["CreditRefused", "OperatorError"], ({ message }) => failCommand(message)),
  Effect.scoped,
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain
)
