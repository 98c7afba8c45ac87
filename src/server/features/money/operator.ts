/** Credit that the operator grants to developers who pay in another way. */
import { Data, Effect, Option } from "effect"
import { SqlClient, SqlError } from "effect/sql"
import { type DeveloperId, newId } from "#rpc/ids"
import { wholeDeployment } from "#sql/audit"
import { LedgerRepository } from "#sql/money/ledger"
import { MeteringRepository } from "#sql/money/usage"
import { findDeveloper } from "#server/platform/find-developer"
import { recordOperatorAct } from "../audit/operator.ts"
import { Ledger } from "./ledger.ts"
import { creditFrom } from "./postings.ts"

/** Error: the service refused the credit; `message` says why. */
export class CreditRefused extends Data.TaggedError("CreditRefused")<{
  readonly message: string
}> {}

export interface Credit {
  /** Id or email address of the developer. */
  readonly developer: string
  readonly cents: number
  readonly reason: string
  /** Reference of the credit. Each developer gets a credit with a reference once. */
  readonly reference: string | undefined
}

const refuse = (message: string) => Effect.fail(new CreditRefused({ message }))

/**
 * Returns the event name of a developer's credit. Credits of earlier releases have the bare reference
 * as their name. If another developer holds that name, this one gets a name of its own.
 */
const sourceOf = Effect.fnUntraced(function* (developerId: DeveloperId, reference: string) {
  const postings = yield* LedgerRepository
  const source = `credit:${reference}`
  const owner = Option.getOrElse(yield* postings.ownerOf(source), () => developerId)
  return owner === developerId ? source : `credit-of:${developerId}:${reference}`
})

/** Credits a developer; false if the developer already has a credit with this reference. */
export const creditDeveloper = Effect.fnUntraced(function* (credit: Credit) {
  const { cents, developer: name, reason, reference } = credit

  const ledger = yield* Ledger
  const metering = yield* MeteringRepository

  const sql = yield* SqlClient.SqlClient
  if (cents < 1) return yield* refuse("Expected a whole number of cents above zero.")
  const found = yield* findDeveloper(name)
  if (Option.isNone(found)) return yield* refuse(`There is no developer ${name}.`)
  const { id: developerId } = found.value

  const give = Effect.gen(function* () {
    const source =
      reference === undefined
        ? `credit:${yield* newId.auditEntry}`
        : yield* sourceOf(developerId, reference)
    const isNew = yield* ledger.post({
      developerId,
      kind: "adjustment",
      source,
      description: reason,
      movement: creditFrom("adjustments", BigInt(cents))
    })
    if (!isNew) return false
    const projects = yield* metering.projectsOf(developerId)
    for (const projectId of [wholeDeployment, ...projects] as const) {
      yield* recordOperatorAct(
        {
          action: "money.credit",
          target: { kind: "developer", id: developerId },
          details: { cents, reason }
        },
        { projectId }
      )
    }
    return true
  })
  return yield* Effect.catchIf(sql.withTransaction(give), SqlError.isSqlError, Effect.die)
})
