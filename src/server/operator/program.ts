/**
 * Acts of the operator on the database, beside the running service: `svc operator voice suspend <environment id>`,
 * the same with `functions`, `invite create --uses 10`, `signups close`, `developer reset-password <developer>`,
 * `money credit <developer> <cents>`, or `runners`.
 */
import { Effect, Layer } from "effect"
import { SecureRandom } from "effect/crypto"
import { Command } from "effect/cli"
import { SqlError } from "effect/sql"
import { AuditRepository } from "#sql/audit"
import { causeOf, poolLayer } from "#sql/database"
import { ClosedSignups } from "#sql/developers/closed-signups"
import { DeveloperRepository } from "#sql/developers/repository"
import { NodeRepository } from "#sql/live/nodes"
import { LedgerRepository } from "#sql/money/ledger"
import { MeteringRepository } from "#sql/money/usage"
import { VoiceRepository } from "#sql/voice"
import { FunctionsRepository } from "#sql/functions/settings"
import { InviteRepository } from "#sql/developers/invites"
import { Ledger } from "../features/money/ledger.ts"
import { checkPresent, databaseOf, openSession, readLocation } from "../backup/location.ts"
import { developerCommand, signupsCommand } from "./developers.ts"
import { inviteCommand } from "./invites.ts"
import { moneyCommand } from "./money.ts"
import { runnersCommand } from "./runners.ts"
import { suspensionCommands } from "./suspensions.ts"
import { Invalidation } from "../platform/invalidation.ts"
import { Passwords } from "../platform/passwords.ts"
import { failCommand } from "../start-error.ts"

/** Database of the service. The layers below would wait for one that is away; a command fails instead. */
const DatabaseLive = Layer.unwrap(
  Effect.gen(function* () {
    const location = yield* readLocation
    yield* checkPresent(location)
    const url = yield* databaseOf(location)
    yield* Effect.scoped(openSession(url))
    return poolLayer({ url, connections: 2 })
  })
)

const ServicesLive = Layer.mergeAll(
  Ledger.layer.pipe(Layer.provideMerge(LedgerRepository.layer)),
  AuditRepository.layer,
  ClosedSignups.layer,
  FunctionsRepository.layer,
  InviteRepository.layer,
  DeveloperRepository.layer,
  MeteringRepository.layer,
  NodeRepository.layer,
  Passwords.layer,
  VoiceRepository.layer,
  Invalidation.layer
).pipe(Layer.provideMerge(Layer.merge(SecureRandom.layerWebCrypto, DatabaseLive)))

const operator = Command.make("operator").pipe(
  Command.withDescription("Acts of the operator, on the database of DATABASE_URL or SVC_DATA_DIR"),
  Command.withSubcommands([
    developerCommand,
    inviteCommand,
    moneyCommand,
    runnersCommand,
    signupsCommand,
    ...suspensionCommands
  ]),
  // Only what runs needs the database, not --help.
  Command.provide(ServicesLive)
)

/** Runs the words of the command line. */
export const program = Command.run(operator, { version: "1" }).pipe(
  Effect.catchTag(["BackupError", "CreditRefused", "OperatorError", "unavailable"], ({ message }) =>
    failCommand(message)
  ),
  Effect.catchTag("SqlError", Effect.die),
  // A statement that fails is a defect of the repositories. Nothing was changed: acts are transactions.
  Effect.catchDefect((defect) =>
    SqlError.isSqlError(defect)
      ? failCommand(`The database refused: ${causeOf(defect)}. Check DATABASE_URL and its role.`)
      : Effect.die(defect)
  ),
  Effect.scoped
)
