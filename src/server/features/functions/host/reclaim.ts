/**
 * Way out for an environment that stores too much: rows that are deleted leave their space in the file
 * of a database, and a write that is cut off leaves a value without a key. Both are given back before the
 * environment is measured again.
 */
import { functionRuntime, functionStorage } from "#rpc/functions/runtime-limits"
import type { Supervised, Supervisor } from "#server/platform/workerd/supervisor"
import { compact, hasKeylessValues, removeKeylessValues, sparseDatabases } from "./compaction.ts"
import type { HostContext } from "./host-context.ts"
import type { Standing } from "./standing.ts"

export interface ReclaimOptions {
  readonly environmentId: string
  readonly context: HostContext
  readonly host: {
    readonly standing: Standing
    readonly supervisor: Supervisor<Supervised>
  }
}

export class Reclaim {
  readonly #options: ReclaimOptions
  #isRunning = false
  #endedAt = -Infinity

  constructor(options: ReclaimOptions) {
    this.#options = options
  }

  /** Starts unless that was done within a minute: code may delete rows, too. */
  inTime(): void {
    const { now } = this.#options.context
    if (now() - this.#endedAt >= functionStorage.compactEveryMillis) this.start()
  }

  /** Starts if the environment is full. Calls wait meanwhile if there is space to give back. */
  start(): void {
    if (!this.#options.host.standing.isFull || this.#isRunning) return
    this.#isRunning = true
    this.#run()
      .catch(this.#options.context.onStorageFailure)
      .finally(() => {
        this.#endedAt = this.#options.context.now()
        this.#isRunning = false
      })
  }

  async #run(): Promise<void> {
    const { context, environmentId, host } = this.#options
    const { directories } = context
    const data = directories.dataOf(environmentId)
    const files = sparseDatabases(data)
    const hasKeyless = await hasKeylessValues(
      data,
      context.wallClock() - functionStorage.keylessMinMillis
    )
    if (files.length > 0 || hasKeyless) {
      await host.supervisor.exclusively(functionRuntime.drainMillis, async () => {
        if (hasKeyless) await removeKeylessValues(data)
        await compact(files, directories.temporaryFolder())
      })
    }
    await host.standing.storage.measure(host.supervisor.process?.pid)
  }
}
