/**
 * Dead letters: messages and events whose delivery failed finally. Developers read, retry and delete
 * them.
 */
import { DateTime, Effect } from "effect"
import { CurrentEnvironment } from "#rpc/auth"
import { NotFound } from "#rpc/errors/codes"
import type { DeadLetter } from "#rpc/functions/dead-letters"
import { functionDeliveries } from "#rpc/functions/limits"
import { type DeadLetterRow, DeadLetterRepository } from "#sql/functions/dead-letters"
import { makeTransaction } from "#server/platform/database"
import { pageOf } from "#server/platform/pages"
import { Audit } from "../audit/service.ts"
import { NewDeliveries } from "./deliveries.ts"

interface ListQuery {
  readonly name?: string
  readonly limit?: number
  readonly cursor?: string
}

interface ById {
  readonly params: { readonly id: string }
}

const isText = ({ contentType }: Pick<DeadLetterRow, "contentType">): boolean =>
  contentType === "json" || contentType === "text"

const viewOf = (row: DeadLetterRow): DeadLetter => {
  const { attempts, body, contentType, failedAt, id, kind, sentAt, target } = row
  const encoding = isText(row) ? "utf8" : "base64"
  return {
    id,
    kind,
    name: target,
    contentType,
    encoding,
    body: Buffer.from(body).toString(encoding),
    attempts,
    sentAt: DateTime.formatIso(sentAt),
    failedAt: DateTime.formatIso(failedAt)
  }
}

const isId = (id: string): boolean => /^\d{1,18}$/.test(id)

/** Handlers of the endpoints. Retried messages do not count against the bound of waiting messages. */
export const makeDeadLetters = Effect.gen(function* () {
  const audit = yield* Audit
  const newDeliveries = yield* NewDeliveries
  const repository = yield* DeadLetterRepository
  const transaction = yield* makeTransaction
  const change = Effect.fnUntraced(function* (id: string, action: "Delete" | "Retry") {
    const environment = yield* CurrentEnvironment
    const one = { environmentId: environment.environmentId, id }
    yield* transaction(
      Effect.gen(function* () {
        if (!isId(id)) return yield* new NotFound()
        const named =
          action === "Delete"
            ? yield* repository.remove(one)
            : yield* repository.retry({ ...one, dueAt: yield* DateTime.now })
        if (named === undefined) return yield* new NotFound()
        return yield* audit.record(environment, {
          action: `functions.deadLetter${action}`,
          target: { kind: "functionDelivery", id },
          details: { kind: named.kind, name: named.target }
        })
      })
    )
    return { id }
  })
  return {
    deadLetters: Effect.fnUntraced(function* ({
      query: { cursor: before, limit = functionDeliveries.deadPageMax, name: target }
    }: {
      readonly query: ListQuery
    }) {
      const { environmentId } = yield* CurrentEnvironment
      const pageSize = Math.min(limit, functionDeliveries.deadPageMax)
      const found = yield* repository.page({ environmentId, target, before, limit: pageSize + 1 })
      const { nextCursor, rows } = pageOf(found, pageSize, ({ id }) => id)
      return { deadLetters: rows.map(viewOf), nextCursor }
    }),
    retryDeadLetter: ({ params: { id } }: ById) =>
      Effect.tap(change(id, "Retry"), newDeliveries.open),
    deleteDeadLetter: ({ params: { id } }: ById) => change(id, "Delete")
  }
})
