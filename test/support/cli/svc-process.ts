/**
 * A process that runs `svc` again and again, each time with the words, folder, environment and input of a
 * message. A run then takes milliseconds instead of the start of Node. A mark ends the output of each run.
 */
import { Readable } from "node:stream"
import { ConfigProvider, Effect, Runtime } from "effect"
import { program } from "#cli/program"

/** One run of `svc`. */
export interface SvcRun {
  readonly words: ReadonlyArray<string>
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly stdin: string
  readonly mark: string
}

const enter = ({ cwd, env, stdin, words }: SvcRun): void => {
  process.chdir(cwd)
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, env)
  process.argv.splice(2, Number.POSITIVE_INFINITY, ...words)
  const input = Readable.from(stdin === "" ? [] : [Buffer.from(stdin)])
  Object.defineProperty(process, "stdin", { value: input, configurable: true })
}

process.on("message", (run: SvcRun) => {
  enter(run)
  const settings = ConfigProvider.layer(ConfigProvider.fromEnv({ env: run.env }))
  Effect.runCallback(Effect.provide(program, settings), {
    onExit: (exit) =>
      Runtime.defaultTeardown(exit, (code) => {
        process.stdout.write(run.mark)
        process.stderr.write(run.mark)
        process.send?.({ code })
      })
  })
})
