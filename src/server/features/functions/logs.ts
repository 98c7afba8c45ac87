/**
 * Log lines of Functions. A node writes them in batches, within a second. A following response ends
 * after a minute, or with the key or session that opened it. The client continues from its cursor.
 */
import { Clock, DateTime, Effect, Latch, Layer, Stream } from "effect"
import { HttpServerResponse } from "effect/http"
import { RateLimited } from "#rpc/errors/codes"
import { functionLogs } from "#rpc/functions/limits"
import type { FunctionsLogLine } from "#rpc/functions/responses"
import type { EnvironmentId } from "#rpc/ids"
import { FunctionsRecordRepository, type LogLineRow, type NewLogLine } from "#sql/functions/records"
import {
  type CredentialEnded,
  makeCredentialCheck,
  whileCredentialsCount
} from "#server/platform/credential-check"
import { sweepHourly } from "#server/platform/database"
import { FairShares } from "#server/platform/fair-semaphore"
import { monotonicMillis } from "#entities/monotonic"
import { type FunctionLogLine, FunctionsLogs } from "./control-plane.ts"

/** Unwritten lines of all environments of a node. */
class LogBuffer {
  /** Latch that is open while unwritten lines exist. */
  readonly nonEmpty = Latch.makeUnsafe(false)
  #lines = new Map<EnvironmentId, Array<FunctionLogLine>>()
  readonly #dropped = new Map<EnvironmentId, number>()
  #size = 0

  /**
   * Adds the lines that an environment may write at the next flush, and counts the others as dropped.
   */
  add(environmentId: EnvironmentId, lines: ReadonlyArray<FunctionLogLine>): void {
    const kept = this.#lines.get(environmentId) ?? []
    for (const line of lines) {
      if (kept.length < functionLogs.linesPerSecond && this.#size < functionLogs.waitingMax) {
        kept.push(line)
        this.#size += 1
      } else this.#dropped.set(environmentId, (this.#dropped.get(environmentId) ?? 0) + 1)
    }
    this.#lines.set(environmentId, kept)
    this.nonEmpty.openUnsafe()
  }

  /** Takes the lines of each environment, and appends a line with the number of dropped lines. */
  take(): ReadonlyArray<readonly [EnvironmentId, ReadonlyArray<FunctionLogLine>]> {
    this.nonEmpty.closeUnsafe()
    const taken = [...this.#lines].map(([environmentId, lines]) => {
      const dropped = this.#dropped.get(environmentId)
      const last = lines.at(-1)
      return [
        environmentId,
        dropped === undefined || last === undefined
          ? lines
          : [...lines, { ...last, level: "warn" as const, message: droppedText(dropped) }]
      ] as const
    })
    this.#lines = new Map()
    this.#dropped.clear()
    this.#size = 0
    return taken
  }
}

const droppedText = (count: number): string =>
  `${count} more lines were dropped: at most ${functionLogs.linesPerSecond} are kept in a second.`

/** Replaces characters that Postgres cannot store: NUL and lone surrogates. */
const storable = (text: string): string =>
  text.slice(0, functionLogs.lineMaxCharacters).replaceAll("\u0000", "\uFFFD").toWellFormed()

const rowsOf = (
  environmentId: EnvironmentId,
  lines: ReadonlyArray<FunctionLogLine>
): ReadonlyArray<NewLogLine> =>
  lines.map(({ at, level, message, version }) => ({
    environmentId,
    at: DateTime.makeUnsafe(at),
    level,
    message: storable(message),
    version
  }))

/** Stores the lines of the runtime. */
export const FunctionsLogsLive = Layer.effect(
  FunctionsLogs,
  Effect.gen(function* () {
    const repository = yield* FunctionsRecordRepository
    const buffer = new LogBuffer()
    const write = Effect.fnUntraced(function* (
      environmentId: EnvironmentId,
      lines: ReadonlyArray<FunctionLogLine>
    ) {
      yield* repository.append(rowsOf(environmentId, lines))
      yield* repository.trim(environmentId, functionLogs.keptLines)
    })
    const flush = Effect.suspend(() =>
      Effect.forEach(
        buffer.take(),
        ([environmentId, lines]) =>
          // The environment may be gone; logs are not worth a retry.
          Effect.catchCause(write(environmentId, lines), (cause) =>
            Effect.logWarning("Failed to write log lines of functions", cause)
          ),
        { discard: true }
      )
    )
    yield* Effect.addFinalizer(() => flush)
    yield* buffer.nonEmpty.await.pipe(
      Effect.andThen(Effect.sleep(functionLogs.flushMillis)),
      Effect.andThen(flush),
      Effect.forever,
      Effect.forkScoped
    )
    yield* sweepHourly("Log lines of functions", (now) =>
      repository.sweep(DateTime.subtract(now, { days: functionLogs.keptDays }))
    )
    return FunctionsLogs.of({
      append: (environmentId, lines) => Effect.sync(() => buffer.add(environmentId, lines))
    })
  })
)

const viewOf = ({ at, ...line }: LogLineRow): FunctionsLogLine => ({
  ...line,
  at: DateTime.formatIso(at)
})

const textOf = (rows: ReadonlyArray<LogLineRow>): string =>
  rows.map((row) => `${JSON.stringify(viewOf(row))}\n`).join("")

/** Query of a request; without `after` it selects the newest lines. */
export interface LogQuery {
  readonly after?: string
  readonly limit?: number
  readonly follow?: "true" | "false"
}

/** Position of a following response. */
interface Position {
  readonly after: string
  readonly sentAt: number
}

/** Streams new lines, with a line break as a periodic keep-alive. */
const makeFollow = Effect.gen(function* () {
  const repository = yield* FunctionsRecordRepository
  return Effect.fnUntraced(function* (environmentId: EnvironmentId, first: string) {
    // Lines may be rare: the stream ends with the credentials, not with the next line.
    const check = yield* makeCredentialCheck
    const now = monotonicMillis(yield* Clock.Clock)
    const end = now() + functionLogs.followSeconds * 1000
    const next = Effect.fnUntraced(function* ({ after, sentAt }: Position) {
      while (now() < end) {
        yield* Effect.sleep(functionLogs.followPollMillis)
        yield* check
        const rows = yield* repository.after({ environmentId, after, limit: functionLogs.pageMax })
        const last = rows.at(-1)
        if (last !== undefined) {
          return [textOf(rows), { after: last.id, sentAt: now() }] as const
        }
        if (now() - sentAt > functionLogs.followBeatSeconds * 1000) {
          return ["\n", { after, sentAt: now() }] as const
        }
      }
      return undefined
    })
    return Stream.unfold<Position, string, CredentialEnded, never>(
      { after: first, sentAt: now() },
      next
    )
  })
})

/** Responds with log lines, one JSON value each. */
export const makeLogResponse = Effect.gen(function* () {
  const repository = yield* FunctionsRecordRepository
  const follow = yield* makeFollow
  const followers = new FairShares<never>(functionLogs.followers)
  /** Holds a place while the stream runs. Without a free place the stream ends at once. */
  const withPlace = (environmentId: EnvironmentId, lines: Stream.Stream<string, CredentialEnded>) =>
    Stream.unwrap(
      Effect.gen(function* () {
        if (!followers.take(environmentId)) return Stream.empty
        yield* Effect.addFinalizer(() => Effect.sync(() => followers.release(environmentId)))
        return lines
      })
    )
  return Effect.fn("Functions.logs")(function* (
    environmentId: EnvironmentId,
    { after, follow: wanted, limit = functionLogs.pageDefault }: LogQuery
  ) {
    const follows = wanted === "true"
    if (follows && followers.heldBy(environmentId) >= functionLogs.followers.permitsPerKey) {
      return yield* new RateLimited({
        message: "Too many responses follow these logs.",
        details: { retryAfterSeconds: functionLogs.followSeconds }
      })
    }
    const rows =
      after === undefined
        ? yield* repository.newest(environmentId, limit)
        : yield* repository.after({ environmentId, after, limit })
    const lines = Stream.make(textOf(rows))
    const last = rows.at(-1)?.id ?? after ?? "0"
    const all = follows
      ? Stream.concat(lines, withPlace(environmentId, yield* follow(environmentId, last)))
      : lines
    return HttpServerResponse.stream(Stream.encodeText(yield* whileCredentialsCount(all)), {
      contentType: "application/x-ndjson",
      headers: { "cache-control": "no-store" }
    })
  })
})
