/** `svc functions init`: a folder with an example. */
import { mkdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { usageFailure } from "./failures.ts"
import { printResult } from "./output.ts"
import { settingsFile } from "./functions-project.ts"

const settings = {
  main: "index.ts",
  bindings: [{ name: "DB", type: "db" }],
  vars: {},
  crons: []
}

const code = `// https://<your service>/fn/<project> calls \`fetch\`, and so does a page:
//   const { visits } = await client.functions.call("visits")
// \`svc functions dev\` reloads it on each change.
interface Env {
  readonly DB: {
    prepare(sql: string): {
      bind(...values: ReadonlyArray<unknown>): { run(): Promise<unknown> }
      all<Row>(): Promise<{ results: ReadonlyArray<Row> }>
    }
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    // Set by the service, only for a request with a valid access token of a player.
    const player = request.headers.get("Svc-Player")
    if (player === null) {
      const error = { code: "signed_out", message: "Sign in first" }
      return Response.json({ error }, { status: 401 })
    }
    await env.DB.prepare("insert into visits (player) values (?)").bind(player).run()
    const { results } = await env.DB.prepare("select count(*) as visits from visits").all()
    return Response.json({ player, ...results[0] })
  }
}

// Called after a player has signed up. Remove it if you do not need it.
export const onPlayerCreated = async ({ player }: { player: { id: string } }): Promise<void> => {
  console.log("A new player", player.id)
}
`

const migration = `create table visits (
  id integer primary key,
  player text not null,
  at text not null default current_timestamp
);
`

/** Files of the example by path. */
const files: Readonly<Record<string, string>> = {
  [settingsFile]: `${JSON.stringify(settings, null, 2)}\n`,
  "index.ts": code,
  "migrations/DB/0001_visits.sql": migration
}

/** Writes a file that does not exist yet. */
const write = (path: string, text: string) =>
  Effect.tryPromise({
    try: () => writeFile(path, text, { flag: "wx" }),
    catch: () => usageFailure(`Failed to write ${path}: it exists, or the folder is read-only.`)
  })

export const initCommand = Command.make(
  "init",
  {
    folder: Argument.String("dir").pipe(
      Argument.withDescription("The folder to make (default: functions)"),
      Argument.withDefault("functions")
    )
  },
  Effect.fn(function* ({ folder }) {
    yield* Effect.promise(() => mkdir(join(folder, "migrations", "DB"), { recursive: true }))
    for (const [path, text] of Object.entries(files)) yield* write(join(folder, path), text)
    yield* printResult({ folder, files: Object.keys(files) }, [
      `Made ${folder} with an example. Next: svc functions dev ${folder}`
    ])
  })
).pipe(Command.withDescription("Make a folder with an example of functions"))
