/** `svc functions logs`. */
import { Console, Effect, Schedule, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import type { FunctionsLogLine } from "#rpc/functions/responses"
import { environmentFlag } from "./files.ts"
import { Json, styled } from "./output.ts"
import { resolveTarget, type Target } from "./target.ts"
import { readStatus, streamLogs } from "./functions-service.ts"

const out = styled("stdout")

const colours = { debug: "dim", info: "cyan", warn: "yellow", error: "red" } as const

const print = Effect.fnUntraced(function* (line: FunctionsLogLine) {
  if (yield* Json) return yield* Console.log(JSON.stringify(line))
  const { at, level, message, version } = line
  const time = out("dim", at.slice(11, 23))
  yield* Console.log(`${time} ${out(colours[level], level.padEnd(5))} v${version} ${message}`)
})

/** Prints the lines of one response; returns the id of the last one. */
const printResponse = Effect.fnUntraced(function* (
  target: Target,
  after: string | undefined,
  follow: boolean
) {
  let last = after
  yield* Stream.runForEach(streamLogs(target, { after, follow }), (line) => {
    last = line.id
    return print(line)
  })
  return last
})

/** Prints new lines for ever; a response ends after a minute. */
export const followLogs = Effect.fnUntraced(function* (target: Target) {
  let last: string | undefined
  while (true) last = yield* printResponse(target, last, true)
})

export const logsCommand = Command.make(
  "logs",
  {
    env: environmentFlag,
    follow: Flag.Boolean("follow").pipe(
      Flag.withAlias("f"),
      Flag.withDescription("Print new lines until Ctrl-C"),
      Flag.withDefault(false)
    )
  },
  Effect.fn(function* ({ env, follow }) {
    const target = yield* resolveTarget(env)
    // It explains a wrong key or an unreachable service.
    yield* readStatus(target)
    if (follow) yield* Effect.retry(followLogs(target), Schedule.spaced("2 seconds"))
    else yield* printResponse(target, undefined, false)
  })
).pipe(Command.withDescription("Print what functions have logged within a week"))
