/** The npm packages for games: what each contains and exports. */

/** The scope of all packages. */
export const scope = "@player-backend"

/** A package and its content. */
export interface GamePackage {
  readonly name: string
  readonly description: string
  /** Versions of Node that it runs under. */
  readonly node: string
  /** Folders of the repository whose modules it contains. */
  readonly folders: ReadonlyArray<string>
  /** Folders whose declarations it contains. */
  readonly declarations: ReadonlyArray<string>
  /** Entries of a package with one file for each; others keep the files of the repository. */
  readonly entries?: Readonly<Record<string, string>>
  readonly exports: Readonly<Record<string, unknown>>
  /** What its manifest says beside the fields of all packages. */
  readonly manifest?: Readonly<Record<string, unknown>>
  readonly keywords: ReadonlyArray<string>
  /** Whether it also has its entries as CommonJS, in the folder `cjs`. */
  readonly isDual?: boolean
  /** Modules that do something when they are imported; a bundler may leave out others. */
  readonly sideEffects?: ReadonlyArray<string>
  /** Its commands, each with the module that it runs. */
  readonly programs?: Readonly<Record<string, string>>
  /** Packages that the game installs when it needs the entry that imports them. */
  readonly peers?: ReadonlyArray<string>
  /** Versions of packages that only games have. */
  readonly ranges?: Readonly<Record<string, string>>
  /** Files and folders that its modules read, at the same paths. */
  readonly files?: ReadonlyArray<string>
  /** Whether it also depends on the packages that no module imports by name: programs and fonts. */
  readonly needsPrograms?: boolean
}

/** An entry of a bundled package, with the file of its types. */
const bundled = (name: string, source: string) => ({
  types: `./types/${source}.d.ts`,
  default: `./${name}.js`
})

/** An entry that `require` loads too. */
const dual = (name: string, source: string) => ({
  import: bundled(name, source),
  require: { types: `./cjs/types/${source}.d.ts`, default: `./cjs/${name}.js` }
})

/** A module of the repository as an entry. */
const kept = (source: string) => bundled(source, source)

const client: GamePackage = {
  name: "client",
  description: "Client of the player backend: sign-in, rooms, matchmaking, channels and saves.",
  node: ">=20",
  folders: ["src/client", "rpc"],
  declarations: ["src/client", "rpc"],
  entries: {
    client: "src/client/client.ts",
    effect: "src/client/effect/native.ts",
    react: "src/client/react/hooks.ts"
  },
  exports: {
    ".": dual("client", "src/client/client"),
    // Effect itself has no CommonJS.
    "./effect": bundled("effect", "src/client/effect/native"),
    "./react": dual("react", "src/client/react/hooks"),
    "./package.json": "./package.json"
  },
  // For programs that do not read `exports`.
  manifest: {
    main: "./cjs/client.js",
    module: "./client.js",
    types: "./cjs/types/src/client/client.d.ts",
    typesVersions: {
      "*": {
        react: ["./cjs/types/src/client/react/hooks.d.ts"],
        effect: ["./types/src/client/effect/native.d.ts"]
      }
    }
  },
  keywords: ["game", "multiplayer", "realtime", "matchmaking", "websocket", "react"],
  isDual: true,
  peers: ["effect", "react"],
  ranges: { effect: "^4.1.0", react: ">=18" }
}

const server: GamePackage = {
  name: "server",
  description: "The player backend as a program and as Effect layers.",
  node: ">=24",
  folders: ["src/server", "entities", "sql", "rpc"],
  declarations: ["src/server", "entities", "sql", "rpc"],
  exports: {
    ".": kept("src/server/app"),
    "./main": kept("src/server/main"),
    "./backup": kept("src/server/backup/main"),
    "./operator": kept("src/server/operator/main"),
    "./rpc/*": kept("rpc/*"),
    "./internal/*": kept("*"),
    "./package.json": "./package.json"
  },
  keywords: ["game", "backend", "multiplayer", "matchmaking", "websocket", "effect"],
  programs: { "player-backend": "src/server/main.js" },
  sideEffects: ["./src/server/main.js", "./src/server/backup/main.js", "./bin/*"],
  files: ["docs", "rpc/authorization.md", "CHANGELOG.md"],
  needsPrograms: true
}

const cli: GamePackage = {
  name: "cli",
  description: "svc, the command line of the player backend, and a Vite plugin.",
  node: ">=22.19",
  folders: ["src/cli", "rpc"],
  declarations: ["src/cli/vite"],
  exports: { "./vite": kept("src/cli/vite/plugin"), "./package.json": "./package.json" },
  keywords: ["game", "backend", "cli", "deploy", "vite-plugin"],
  programs: { svc: "src/cli/main.js" },
  sideEffects: ["./src/cli/main.js", "./bin/*"],
  files: ["docs/starters"]
}

const testing: GamePackage = {
  name: "testing",
  description: "Test kit of the player backend: the whole service inside your tests.",
  node: ">=24",
  folders: ["src/testing"],
  declarations: ["src/testing"],
  exports: {
    ".": kept("src/testing/testing"),
    "./promises": kept("src/testing/promises"),
    "./package.json": "./package.json"
  },
  keywords: ["game", "backend", "testing", "vitest", "effect"]
}

export const packages: ReadonlyArray<GamePackage> = [client, server, cli, testing]
