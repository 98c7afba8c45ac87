/** `svc functions logs`. */
import { Effect, Schedule, Stream } from "effect"
import { Command, Flag } from "effect/cli"
import type { FunctionsLogLine } from "#rpc/functions/responses"
import { environmentFlag, switchFlag } from "./files.ts"
import { Json, print, printJson, styled } from "./output.ts"
import { plainLines } from "./terminal-text.ts"
import { resolveTarget } from "./checked-target.ts"
import type { Target } from "./target.ts"
import { readStatus, streamLogs } from "./functions-service.ts"

const out = styled("stdout")

const colours = { debug: "dim", info: "cyan", warn: "yellow", error: "red" } as const

/** Prints an entry. Further lines of its message are indented, so that none looks like an entry. */
const printEntry = Effect.fnUntraced(function* (entry: FunctionsLogLine) {
  if (yield* Json) return yield* printJson(JSON.stringify(entry))
  const { at, level, message, version } = entry
  const time = out("dim", at.slice(11, 23))
  const text = plainLines(message, "  | ")
  const head = `${time} ${out(colours[level], level.padEnd(5))} v${version}`
  yield* print(...`${head} ${text}`.split("\n"))
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
    return printEntry(line)
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
    follow: switchFlag("follow", "Print new lines until Ctrl-C").pipe(Flag.withAlias("f"))
  },
  Effect.fn(function* ({ env, follow }) {
    const target = yield* resolveTarget(env)
    // It explains a wrong key or an unreachable service.
    yield* readStatus(target)
    if (follow) yield* Effect.retry(followLogs(target), Schedule.spaced("2 seconds"))
    else yield* printResponse(target, undefined, false)
  })
).pipe(Command.withDescription("Print what functions have logged within a week"))
