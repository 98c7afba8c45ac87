/**
 * End of `npm start`: npm runs the service through a shell and passes no signal on to it, so the service
 * would keep the port. It watches the processes above it instead.
 */
import { Config, Effect, Option, Schedule } from "effect"
import { run } from "./postgres/binaries.ts"

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM"
  }
}

/** The process that waits for a shell with one command; none if the process is no such shell. */
const parentOfShell = (pid: number) =>
  run("ps", ["-o", "ppid=,args=", "-p", `${pid}`], {}).pipe(
    Effect.map((line) => Number(/^\s*(\d+) \S*sh -c /.exec(line)?.[1])),
    Effect.option,
    Effect.map(Option.filter(Number.isInteger))
  )

/** Waits until the npm that started this process is gone; for ever if npm did not start it. */
export const npmEnd = Effect.gen(function* () {
  const script = yield* Effect.orDie(Config.option(Config.String("npm_lifecycle_event")))
  if (Option.isNone(script)) return yield* Effect.never
  const parent = process.ppid
  const above = [parent, ...Option.toArray(yield* parentOfShell(parent))]
  yield* Effect.sync(() => process.ppid === parent && above.every(isAlive)).pipe(
    Effect.repeat({ while: (alive) => alive, schedule: Schedule.spaced("500 millis") })
  )
})
