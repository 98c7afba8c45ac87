/** A runtime of functions that records what it is asked, for tests of the control plane. */
import { Context, Effect, Layer } from "effect"
import { FunctionError, FunctionInvalid, SqlError, Unavailable } from "#rpc/errors/codes"
import { FunctionsRuntime } from "#server/features/functions/runtime"
import type { FunctionHook, QueuedMessage } from "#server/features/functions/stored-data"

/** A call that the runtime was asked to make. */
export interface RecordedCall {
  readonly kind: "changed" | "deliver" | "hook" | "purge" | "query" | "scheduled"
  readonly environmentId: string
  readonly detail: unknown
}

/** What tests steer and see. */
export interface FakeState {
  readonly calls: Array<RecordedCall>
  hooks: ReadonlyArray<FunctionHook>
  /** Ids of messages that the code does not acknowledge, or whether all calls fail. */
  retry: (message: QueuedMessage) => boolean
  isBroken: boolean
  isDiskFull: boolean
  /** What the start of a new version waits for. */
  starting: Effect.Effect<void>
}

export class FakeRuntime extends Context.Service<FakeRuntime, FakeState>()(
  "test/support/function-runtime/FakeRuntime"
) {
  static readonly layer = Layer.sync(FakeRuntime, () => ({
    calls: [],
    hooks: [],
    retry: () => false,
    isBroken: false,
    isDiskFull: false,
    starting: Effect.void
  }))
}

const text = new TextDecoder()

/** Code that has the text `syntax error` does not start. */
export const FakeFunctionsRuntime = Layer.effect(
  FunctionsRuntime,
  Effect.map(FakeRuntime, (state) => {
    const record = (kind: RecordedCall["kind"], environmentId: string, detail: unknown = null) =>
      Effect.suspend(() => {
        state.calls.push({ kind, environmentId, detail })
        return state.isBroken ? Effect.fail(new FunctionError()) : Effect.void
      })
    const note = (kind: RecordedCall["kind"], environmentId: string) =>
      Effect.ignore(record(kind, environmentId))
    return FunctionsRuntime.of({
      unavailable: undefined,
      checkDisk: Effect.suspend(() =>
        state.isDiskFull
          ? Effect.fail(new Unavailable({ message: "The disk is full." }))
          : Effect.void
      ),
      validate: ({ modules }) => {
        const broken = modules.find(({ content }) => text.decode(content).includes("syntax error"))
        const outcome =
          broken === undefined
            ? Effect.succeed({ hooks: state.hooks })
            : Effect.fail(new FunctionInvalid({ details: { file: broken.name, line: 1 } }))
        return Effect.andThen(state.starting, outcome)
      },
      changed: (environmentId) => note("changed", environmentId),
      missedChanges: Effect.void,
      settled: () => Effect.void,
      query: (environmentId, _binding, sql) =>
        Effect.andThen(
          note("query", environmentId),
          sql.startsWith("select")
            ? Effect.succeed({ columns: ["a"], rows: [[1]], rowsAffected: 0, lastInsertId: null })
            : Effect.fail(new SqlError({ message: "near: syntax" }))
        ),
      entries: () => Effect.succeed({ entries: [], cursor: null }),
      deleteEntries: () => Effect.succeed({ deleted: 1, more: false }),
      migrate: (_environmentId, _binding, migrations) =>
        Effect.succeed({
          applied: migrations.map(({ name }) => name),
          skipped: [],
          failed: null
        }),
      scheduled: (environmentId, cron, scheduledTime) =>
        record("scheduled", environmentId, { cron, scheduledTime }),
      deliver: (environmentId, queue, messages) =>
        Effect.as(record("deliver", environmentId, { queue, messages }), {
          retry: messages.filter(state.retry).map(({ id }) => ({ id }))
        }),
      hook: (environmentId, hook, payload) => record("hook", environmentId, { hook, payload }),
      resources: () =>
        Effect.succeed({
          databases: [{ binding: "DB", sizeBytes: 4096 }],
          kv: [],
          files: [],
          queues: []
        }),
      stop: () => Effect.void,
      purge: (environmentId) => note("purge", environmentId)
    })
  })
)
