/** `svc functions dev`: deploys to development on each change, and prints the logs. */
import { Effect, Option, Queue, Schedule, Stream } from "effect"
import { Command } from "effect/cli"
import type { Failure } from "./failures.ts"
import { note, styled } from "./output.ts"
import { resolveTarget } from "./checked-target.ts"
import type { Target } from "./target.ts"
import { deployFolder, folderArgument } from "./functions-deploy.ts"
import { followLogs } from "./functions-logs.ts"
import { applyMigrations } from "./functions-migrations.ts"
import { readSettings } from "./functions-project.ts"
import { watchFolder } from "./watch-folder.ts"

const err = styled("stderr")

/** Editors write a file in several steps. */
const settleMillis = 150

/** Changes of a folder and its subfolders, as one item for several of them. */
const changesOf = (folder: string) =>
  Stream.callback<void>((queue) =>
    Effect.acquireRelease(
      Effect.sync(() => watchFolder(folder, () => Queue.offerUnsafe(queue, undefined))),
      (stop) => Effect.sync(stop)
    )
  ).pipe(Stream.debounce(settleMillis))

const report = ({ hints = [], message }: Failure) =>
  note(`${err("red", "error")}: ${message}`, ...hints.map((hint) => `  ${hint}`))

/** Deploys and migrates. It prints an error of the code, and the previous version stays live. */
const update = Effect.fnUntraced(function* (target: Target, folder: string) {
  const { url, version } = yield* deployFolder(target, folder, { enable: true })
  const { bindings = [] } = yield* readSettings(folder)
  for (const { name, type } of bindings) {
    if (type === "db") yield* applyMigrations(target, folder, name)
  }
  yield* note(`${err("green", "live")}  version ${version}  ${url}`)
})

export const devCommand = Command.make(
  "dev",
  { folder: folderArgument },
  Effect.fn(function* ({ folder }) {
    const target = yield* resolveTarget(Option.some("development"))
    yield* readSettings(folder)
    const updated = Effect.catchTag(update(target, folder), "Failure", report)
    const deployments = Stream.runForEach(
      Stream.concat(Stream.make(undefined), changesOf(folder)),
      () => updated
    )
    const logs = Effect.retry(followLogs(target), Schedule.spaced("2 seconds"))
    yield* Effect.all([deployments, logs], { concurrency: 2, discard: true })
  })
).pipe(
  Command.withDescription(
    "Deploy to development on each change, apply migrations, and print the logs until Ctrl-C"
  )
)
