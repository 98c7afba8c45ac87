/**
 * Compiles the code of an environment to a configuration of workerd, in a separate process. The process
 * starts with the first compilation and ends after minutes without one.
 */
import { type ChildProcess, fork } from "node:child_process"
import { fileURLToPath } from "node:url"
import { functionRuntime } from "#rpc/functions/runtime-limits"
import type { CompileReply, CompileRequest } from "./process.ts"
import type { CompileInput } from "./worker-options.ts"

const program = fileURLToPath(new URL("process.ts", import.meta.url))

interface Pending {
  readonly resolve: (config: Uint8Array) => void
  readonly reject: (error: Error) => void
}

/**
 * V8 flags that bound the young generation of an isolate. Without them an "ok" function grew to 400 MiB
 * in 100,000 calls, and the supervisor ended it for its memory. With them it grew to 137 MiB at the
 * same rate.
 */
const runtimeFlags = "--max-semi-space-size=2"

export class Compiler {
  readonly #pending = new Map<number, Pending>()
  #child: ChildProcess | undefined
  #lastId = 0
  #idle: NodeJS.Timeout | undefined

  /** Compiles a configuration; rejects if the modules or the bindings are invalid. */
  compile(input: CompileInput): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      if (this.#pending.size >= functionRuntime.compilationsWaiting) {
        return reject(new Error("too many deployments start at once"))
      }
      const id = ++this.#lastId
      const child = this.#running()
      clearTimeout(this.#idle)
      const deadline = setTimeout(() => child.kill("SIGKILL"), functionRuntime.compileMillis)
      const settle = () => {
        clearTimeout(deadline)
        this.#pending.delete(id)
        if (this.#pending.size === 0) this.#endWhenIdle()
      }
      this.#pending.set(id, {
        resolve: (config) => {
          settle()
          resolve(config)
        },
        reject: (error) => {
          settle()
          reject(error)
        }
      })
      child.send({ id, input } satisfies CompileRequest)
    })
  }

  stop(): void {
    clearTimeout(this.#idle)
    this.#child?.kill("SIGKILL")
    this.#child = undefined
  }

  #endWhenIdle(): void {
    this.#idle = setTimeout(() => this.stop(), functionRuntime.compilerIdleMillis)
    this.#idle.unref()
  }

  #running(): ChildProcess {
    if (this.#child?.connected === true) return this.#child
    const child = fork(program, [], {
      serialization: "advanced",
      env: { MINIFLARE_WORKERD_V8_FLAGS: runtimeFlags },
      execArgv: ["--max-old-space-size=512"],
      stdio: ["ignore", "ignore", "ignore", "ipc"]
    })
    child.on("message", (reply: CompileReply) => {
      const pending = this.#pending.get(reply.id)
      if ("config" in reply) pending?.resolve(reply.config)
      else pending?.reject(new Error(reply.problem))
    })
    const onEnd = (): void => {
      if (this.#child === child) this.#child = undefined
      for (const { reject } of this.#pending.values()) reject(new Error("the compiler has ended"))
    }
    child.on("exit", onEnd).on("error", onEnd)
    // It ends with the service, and must not keep it running.
    child.unref()
    child.channel?.unref()
    this.#child = child
    return child
  }
}
