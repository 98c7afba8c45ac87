/**
 * Queries for TXT records of DNS. They hold no thread and end with the fiber, so a slow name server holds
 * nobody else up.
 */
import { Resolver } from "node:dns"
import { Data, Effect } from "effect"

/** Error when no name server has answered. */
export class TextRecordError extends Data.TaggedError("TextRecordError")<{
  readonly name: string
  readonly code: string
}> {
  override readonly message = `Failed to look up the TXT records of ${this.name}: ${this.code}`
}

/** Milliseconds until a query is repeated, and how often it is sent. */
const queries = { timeout: 1000, tries: 2 } as const

/** The response that there are none. */
const noRecords: ReadonlySet<string> = new Set(["ENODATA", "ENOTFOUND"])

/** Finds the values of the TXT records of a name, from these name servers or those of the system. */
export const findTextRecords = (
  name: string,
  servers: ReadonlyArray<string> | undefined
): Effect.Effect<ReadonlyArray<string>, TextRecordError> =>
  Effect.callback((resume) => {
    const resolver = new Resolver(queries)
    if (servers !== undefined) resolver.setServers(servers)
    resolver.resolveTxt(name, (error, records) => {
      if (error === null) return resume(Effect.succeed(records.map((parts) => parts.join(""))))
      const code = error.code ?? error.message
      resume(
        noRecords.has(code) ? Effect.succeed([]) : Effect.fail(new TextRecordError({ name, code }))
      )
    })
    return Effect.sync(() => resolver.cancel())
  })
