/** `svc init`: a new game with a config, in a folder of its own. */
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, FileSystem, Option, Path } from "effect"
import { Argument, Command, Flag, Prompt, TerminalCapabilities } from "effect/cli"
import manifest from "../../package.json" with { type: "json" }
import { usageFailure } from "./failures.ts"
import { writeText } from "./files.ts"
import { printResult } from "./output.ts"

const starters = ["vanilla", "react", "phaser"] as const
type Starter = (typeof starters)[number]

const descriptions: Readonly<Record<Starter, string>> = {
  vanilla: "Vanilla: JavaScript and a canvas",
  react: "React: components over the state of a room",
  phaser: "Phaser: ships in an arcade scene"
}

/** Packages that a starter needs beside those of the player backend. */
const libraries: Readonly<Record<Starter, Readonly<Record<string, string>>>> = {
  vanilla: {},
  react: { react: "^19.3.1", "react-dom": "^19.3.1" },
  phaser: { phaser: "^4.2.1" }
}

/** Node that the service runs on; npm installs it. */
const { node } = manifest.dependencies
const { vite } = manifest.devDependencies

const folder = fileURLToPath(new URL("../../docs/starters/", import.meta.url))

/** npm leaves `.gitignore` out of packages. */
const targetOf = (path: string): string => (path === "gitignore" ? ".gitignore" : path)

const filesOf = (starter: Starter): ReadonlyMap<string, string> =>
  new Map(
    ["common", starter].flatMap((part) =>
      globSync("**/*", { cwd: join(folder, part), withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => {
          const path = join(entry.parentPath, entry.name)
          const name = path.slice(join(folder, part).length + 1)
          return [targetOf(name), readFileSync(path, "utf8")] as const
        })
    )
  )

/** Returns the source of a package of the player backend: a folder of archives, or the registry. */
const sourceOf = (name: string, archives: string | undefined): string =>
  archives === undefined
    ? `^${manifest.version}`
    : `file:${join(archives, `player-backend-${name}-${manifest.version}.tgz`)}`

const manifestOf = (name: string, starter: Starter, archives: string | undefined): string => {
  const own = (packageName: string) => [
    `@player-backend/${packageName}`,
    sourceOf(packageName, archives)
  ]
  const content = {
    name,
    private: true,
    type: "module",
    scripts: { dev: "svc dev", build: "vite build", deploy: "vite build && svc deploy" },
    dependencies: Object.fromEntries([own("client"), ...Object.entries(libraries[starter])]),
    devDependencies: Object.fromEntries([
      own("cli"),
      own("server"),
      ["node", node],
      ["vite", vite]
    ]),
    allowScripts: manifest.allowScripts
  }
  return `${JSON.stringify(content, null, 2)}\n`
}

const canPrompt = Effect.map(
  TerminalCapabilities.TerminalCapabilities,
  (terminal) => terminal.canPrompt
)

const folderOf = Effect.fnUntraced(function* (given: Option.Option<string>) {
  if (Option.isSome(given)) return given.value
  if (yield* canPrompt) {
    return yield* Prompt.run(Prompt.String({ message: "Folder of the game", default: "my-game" }))
  }
  return yield* usageFailure("The folder of the game is missing: svc init my-game")
})

const starterOf = Effect.fnUntraced(function* (given: Option.Option<Starter>) {
  if (Option.isSome(given)) return given.value
  if (!(yield* canPrompt)) return "vanilla"
  const choices = starters.map((value) => ({ title: descriptions[value], value }))
  return yield* Prompt.run(Prompt.Select({ message: "Starter", choices }))
})

/** The name of an npm package: of lower case, without blanks. */
const packageName = (text: string): string =>
  text
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, "-")
    .replace(/^[._-]+/, "") || "my-game"

const init = Effect.fn(function* (options: {
  readonly folder: Option.Option<string>
  readonly starter: Option.Option<Starter>
  readonly packages: Option.Option<string>
}) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const game = yield* folderOf(options.folder)
  const target = path.resolve(game)
  const present = yield* Effect.orElseSucceed(fs.readDirectory(target), () => [])
  if (present.length > 0) {
    return yield* usageFailure(`${game} is not empty: choose another folder.`)
  }
  const starter = yield* starterOf(options.starter)
  const archives = Option.map(options.packages, (given) => path.resolve(given))
  const files = new Map(filesOf(starter))
  files.set(
    "package.json",
    manifestOf(packageName(path.basename(target)), starter, Option.getOrUndefined(archives))
  )
  for (const [name, text] of files) {
    const file = path.join(target, name)
    yield* Effect.mapError(fs.makeDirectory(path.dirname(file), { recursive: true }), () =>
      usageFailure(`Failed to create ${path.dirname(file)}: check its permissions.`)
    )
    yield* writeText(file, text)
  }
  yield* printResult({ folder: target, starter, files: [...files.keys()].toSorted() }, [
    `Created ${game} with the starter ${starter}: ${files.size} files.`,
    "",
    ...(game === "." ? [] : [`  cd ${game}`]),
    "  npm install",
    "  npm run dev      starts the service and the game, and opens the browser",
    "  npm run deploy   builds the game and puts it on the service"
  ])
})

export const initCommand = Command.make(
  "init",
  {
    folder: Argument.String("folder").pipe(
      Argument.withDescription("The folder of the game; it is created"),
      Argument.optional
    ),
    starter: Flag.Literals("starter", starters).pipe(
      Flag.withAlias("s"),
      Flag.withDescription("What the game is made with (default: asks, else vanilla)"),
      Flag.optional
    ),
    packages: Flag.String("packages").pipe(
      Flag.withDescription("Take the packages from this folder of archives (npm run packages)"),
      Flag.optional
    )
  },
  init
).pipe(
  Command.withDescription("Create a game: config, starter and scripts"),
  Command.withExamples([
    { command: "svc init my-game --starter phaser", description: "A game with Phaser" }
  ])
)
