/** Failures of the disk on which functions store their data. */
import { Data, Option, Schema } from "effect"
import { functionRuntime } from "#rpc/functions/runtime-limits"
import { postJson, type WorkerRequest } from "./worker-http.ts"

/** Error: the service cannot write to its data directory. `message` is for developers. */
export class DiskFailure extends Data.TaggedError("DiskFailure")<{
  readonly message: string
  readonly cause: unknown
}> {}

/** System error codes of failed writes, with their meanings. */
const reasons: Readonly<Record<string, string>> = {
  EDQUOT: "the quota of the disk is used up",
  EIO: "the disk has an error",
  ENOSPC: "the disk is full",
  EROFS: "the disk is read-only"
}

const toDiskFailure = (error: unknown): unknown => {
  const code = error instanceof Error && "code" in error ? error.code : undefined
  const reason = typeof code === "string" ? reasons[code] : undefined
  if (reason === undefined) return error
  const message =
    `Functions cannot store data on the server, since ${reason}. ` +
    "Ask the operator of the service to free space in its data directory."
  return new DiskFailure({ message, cause: error })
}

/** Runs work that writes files; rejects with {@link DiskFailure} if the disk causes a failure. */
export const writing = async <A>(work: () => Promise<A>): Promise<A> => {
  try {
    return await work()
  } catch (error) {
    throw toDiskFailure(error)
  }
}

const Warmed = Schema.Struct({ error: Schema.optionalKey(Schema.String) })
const decodeWarmed = Schema.decodeUnknownOption(Warmed)

/** Starts the simulators of bindings before the first call needs them; returns why one cannot start. */
export const warm = async (process: Omit<WorkerRequest, "facts">): Promise<string | undefined> => {
  const signal = AbortSignal.timeout(functionRuntime.restartMillis)
  try {
    const { body } = await postJson(
      { ...process, facts: { kind: "admin" } },
      { operation: "warm" },
      signal
    )
    return Option.getOrUndefined(decodeWarmed(body))?.error
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
