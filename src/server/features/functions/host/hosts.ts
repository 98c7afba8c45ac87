/**
 * Hosts of this runner, by environment. It bounds the number of processes: a start beyond the bound
 * ends the process that was idle longest. Processes that are idle for minutes also end.
 */
import { functionRuntime } from "#rpc/functions/runtime-limits"
import { Sink } from "#entities/local-actors"
import { GateClosed } from "#server/platform/workerd/supervisor"
import { FunctionHost, type HostOptions } from "./host.ts"
import type { HostContext } from "./host-context.ts"

export interface HostsOptions {
  readonly context: Omit<HostContext, "acquireStartSlot">
  /** Maximum number of running processes. */
  readonly processesMax: number
  readonly optionsOf: (environmentId: string) => Omit<HostOptions, "environmentId">
}

export class Hosts {
  readonly #options: HostsOptions
  readonly #hosts = new Map<string, FunctionHost>()
  readonly #waiting: Array<() => void> = []
  #starting = 0
  #closed = false
  /** Emits an environment that has been idle for long. Without another receiver its process ends. */
  readonly idle = new Sink<[environmentId: string]>()

  constructor(options: HostsOptions) {
    this.#options = options
    this.idle.register((environmentId) => void this.close(environmentId, 0))
  }

  get all(): Iterable<readonly [string, FunctionHost]> {
    return this.#hosts
  }

  /** Number of running processes. */
  get processes(): number {
    let count = 0
    for (const { supervisor } of this.#hosts.values())
      if (supervisor.process !== undefined) count += 1
    return count
  }

  /** Returns the host of an environment; undefined if it has none here. */
  known(environmentId: string): FunctionHost | undefined {
    return this.#hosts.get(environmentId)
  }

  /** Returns the host of an environment. Its process starts with the first call. */
  of(environmentId: string): FunctionHost {
    const known = this.#hosts.get(environmentId)
    if (known !== undefined) return known
    if (this.#closed) throw new GateClosed({ reason: "stopped" })
    const { context, optionsOf } = this.#options
    const host = new FunctionHost(
      { ...context, acquireStartSlot: () => this.#acquireStartSlot(environmentId) },
      { environmentId, ...optionsOf(environmentId) }
    )
    this.#hosts.set(environmentId, host)
    return host
  }

  /** Ends the process of an environment after its calls have ended, and removes the host. */
  async close(environmentId: string, drainMillis: number): Promise<void> {
    const host = this.#hosts.get(environmentId)
    if (host === undefined) return
    await host.close(drainMillis)
    if (this.#hosts.get(environmentId) === host) this.#hosts.delete(environmentId)
  }

  /** Sends collected logs and usage, and ends processes that have been idle for long. */
  sweep(): void {
    const now = this.#options.context.now()
    for (const [environmentId, host] of this.#hosts) {
      host.flush()
      host.watch()
      const { supervisor } = host
      if (supervisor.load > 0 || now - supervisor.lastUsedAt < functionRuntime.idleMillis) continue
      if (!supervisor.isQuiet || host.hasAlarms()) continue
      this.idle.send(environmentId)
    }
  }

  /** Ends all hosts. */
  async closeAll(drainMillis: number): Promise<void> {
    this.#closed = true
    await Promise.all([...this.#hosts.keys()].map((id) => this.close(id, drainMillis)))
  }

  /** Waits for a slot to start a process outside of any environment. */
  acquireStartSlot(): Promise<() => void> {
    return this.#acquireStartSlot("")
  }

  /** Waits for a slot to start a process, and makes room for it. */
  async #acquireStartSlot(environmentId: string): Promise<() => void> {
    if (this.#starting >= functionRuntime.startsAtOnce) {
      if (this.#waiting.length >= functionRuntime.startsWaiting)
        throw new GateClosed({ reason: "busy" })
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    } else {
      this.#starting += 1
    }
    const releaseSlot = (): void => {
      const next = this.#waiting.shift()
      if (next === undefined) this.#starting -= 1
      else next()
    }
    try {
      await this.#makeRoom(environmentId)
      return releaseSlot
    } catch (error) {
      releaseSlot()
      throw error
    }
  }

  async #makeRoom(environmentId: string): Promise<void> {
    if (this.processes < this.#options.processesMax) return
    const idle = [...this.#hosts]
      .filter(([id, { supervisor }]) => id !== environmentId && supervisor.process !== undefined)
      .filter(([, { supervisor }]) => supervisor.load === 0)
      .toSorted(([, a], [, b]) => a.supervisor.lastUsedAt - b.supervisor.lastUsedAt)
    const [longest] = idle
    if (longest === undefined) throw new GateClosed({ reason: "busy" })
    await longest[1].supervisor.exclusively(0, async () => undefined)
  }
}
