/**
 * The house rules: what the layout of this repository promises to its readers.
 *
 * Each rule is a pure function of files; beside it stands one example that it must refuse. The
 * lists that a contributor may edit (words, floors, sizes, exceptions) are in `house/house.ts`.
 */
import { assert, describe, it } from "@effect/vitest"
import { arrows, cycles, folderCycles, importForms } from "./imports.ts"
import { hiddenInputs, machinePaths, marks, types } from "./language.ts"
import { citations, titles, wordings } from "./prose.ts"
import {
  functionSizes,
  header,
  migrationNumbers,
  names,
  sizes,
  topFolders,
  twins,
  words
} from "./shape.ts"
import { parse, type Problem, type Source, type TextFile } from "./source.ts"
import { readTree } from "./tree.ts"

const files = readTree()
// Programs that benchmarks compare with are a package of their own, in their own style.
const typescript = files.filter(
  ({ path }) => /\.tsx?$/.test(path) && !path.startsWith("test/bench/peers/")
)
const sources = typescript.map(parse)

/** `path:line message` for each problem, so that a terminal opens the place. */
const report = (problems: ReadonlyArray<Problem>) =>
  problems.map(({ path, line, message }) => `${path}:${line} ${message}`).join("\n")

const holds = (problems: ReadonlyArray<Problem>) => {
  if (problems.length > 0) assert.fail(`\n${report(problems)}`)
}

const file = (path: string, text = ""): TextFile => ({ path, text })
const source = (path: string, text: string): Source => parse(file(path, text))

const refuses = (problems: ReadonlyArray<Problem>, ...expected: ReadonlyArray<string>) =>
  assert.strictEqual(report(problems), expected.join("\n"))

describe("shape", () => {
  it("reads the files of this repository", () => {
    assert.include(
      sources.map(({ path }) => path),
      "test/house/house.test.ts"
    )
  })

  it("allows only the known folders at the top", () => {
    refuses(topFolders(file("lib/rooms.ts")), "lib/rooms.ts:1 no folder at the top is called lib")
    refuses(topFolders(file(".deploy/a")), ".deploy/a:1 no folder at the top is called .deploy")
    refuses(topFolders(file(".ci/run")))
    refuses(topFolders(file("docs/rooms.md")))
    holds(files.flatMap(topFolders))
  })

  it("names files in kebab-case, with a word that says something", () => {
    refuses(names(file("src/roomHub.ts")), "src/roomHub.ts:1 roomHub.ts is not kebab-case")
    refuses(
      names(file("src/rooms/utils.ts")),
      "src/rooms/utils.ts:1 utils.ts says nothing: name it"
    )
    refuses(names(file("sql/migrations/0001_players.ts")))
    refuses(names(file("test/room-survival.test.ts")))
    holds(files.flatMap(names))
  })

  it("uses one word for each feature", () => {
    refuses(
      words(file("sql/score.ts")),
      "sql/score.ts:1 score is no word of a feature (see rpc/features.ts)"
    )
    refuses(
      words(file("src/server/features/lobby/list.ts")),
      "src/server/features/lobby/list.ts:1 lobby is no word of a feature (see rpc/features.ts)"
    )
    refuses(
      words(file("test/features/lobby/list.test.ts")),
      "test/features/lobby/list.test.ts:1 lobby is no word of a feature (see rpc/features.ts)"
    )
    refuses(words(file("src/server/features/saves/limits.ts")))
    holds(files.flatMap(words))
  })

  it("gives a word a file or a folder, never both", () => {
    refuses(
      twins([file("rpc/saves.ts"), file("rpc/saves/limits.ts")]),
      "rpc/saves.ts:1 rpc/saves.ts stands beside the folder rpc/saves/: use one of them"
    )
    refuses(
      twins([file("src/dashboard/views/money.tsx"), file("src/dashboard/views/money/usage.tsx")]),
      "src/dashboard/views/money.tsx:1 src/dashboard/views/money.tsx stands beside the folder " +
        "src/dashboard/views/money/: use one of them"
    )
    refuses(
      twins([file("test/saves.test.ts"), file("test/saves/limits.test.ts")]),
      "test/saves.test.ts:1 test/saves.test.ts stands beside the folder test/saves/: use one of them"
    )
    refuses(twins([file("rpc/saves.ts"), file("sql/saves/limits.ts")]))
    holds(twins(files))
  })

  it("gives each migration a number of its own", () => {
    refuses(
      migrationNumbers([
        file("sql/migrations/0007_rooms.ts"),
        file("sql/migrations/0008_saves.ts"),
        file("sql/migrations/0008_stats.ts")
      ]),
      "sql/migrations/0008_stats.ts:1 0008 is the number of saves: take the next free one"
    )
    refuses(
      migrationNumbers([file("sql/migrations/0007_rooms.ts"), file("sql/migrations/0008_rooms.ts")])
    )
    assert.isAbove(typescript.filter(({ path }) => path.startsWith("sql/migrations/0")).length, 9)
    holds(migrationNumbers(typescript))
  })

  it("opens every module with a doc comment", () => {
    const missing = "src/saves.ts:1 open the file with a /** comment that says what it is"
    refuses(header(file("src/saves.ts", "// Saves.\nexport {}\n")), missing)
    refuses(header(file("src/saves.ts", "export {}\n/** Saves. */\n")), missing)
    refuses(header(file("src/main.ts", "#!/usr/bin/env node\n/** The service. */\n")))
    holds(typescript.flatMap(header))
  })

  it("keeps files, lines and functions short", () => {
    refuses(
      sizes(file("src/saves.ts", "\n".repeat(401))),
      "src/saves.ts:1 file of 401 lines, 400 is the most"
    )
    refuses(
      sizes(file("src/saves.ts", `\n${"x".repeat(121)}\n`)),
      "src/saves.ts:2 line of 121 characters"
    )
    const long = `() => {${"\n".repeat(70)}}`
    refuses(
      functionSizes(source("src/saves.ts", `\nexport const save = ${long}`)),
      "src/saves.ts:2 function of 71 lines, 70 is the most"
    )
    refuses(functionSizes(source("test/saves.test.ts", `describe("saves", ${long})`)))
    refuses(functionSizes(source("test/saves.test.ts", `layer(Live)("saves", ${long})`)))
    refuses(
      functionSizes(source("test/saves.test.ts", `it("saves", ${long})`)),
      "test/saves.test.ts:1 function of 71 lines, 70 is the most"
    )
    holds([...typescript.flatMap(sizes), ...sources.flatMap(functionSizes)])
  })
})

describe("imports", () => {
  it("lets imports run downwards only: telemetry, platform, entities, sql, rpc, effect", () => {
    refuses(
      arrows(source("sql/rooms.ts", `import { Room } from "#entities/room/protocol"`)),
      "sql/rooms.ts:1 sql may import sql, rpc, not entities/room/protocol.ts"
    )
    const upward = source("src/server/platform/mail.ts", `import "#server/links/hub"`)
    refuses(
      arrows(upward),
      "src/server/platform/mail.ts:1 src/server/platform may import src/server/platform, entities, " +
        "sql, rpc, package.json, not src/server/links/hub.ts"
    )
    refuses(
      arrows(source("src/server/app.ts", `import("#testing/app")`)),
      "src/server/app.ts:1 src/server may import src/server, entities, sql, rpc, package.json, " +
        "not src/testing/app.ts"
    )
    refuses(arrows(source("src/server/links/hub.ts", `import { Rooms } from "#sql/rooms"`)))
    holds(sources.flatMap(arrows))
  })

  it("lets a browser load the contract and the client", () => {
    refuses(
      arrows(source("rpc/ids.ts", `import { randomBytes } from "node:crypto"`)),
      "rpc/ids.ts:1 rpc may import the packages effect, not node:crypto"
    )
    refuses(
      arrows(source("src/client/client.ts", `import type { Hub } from "#server/hub"`)),
      "src/client/client.ts:1 src/client may import src/client, rpc, not src/server/hub.ts"
    )
    refuses(arrows(source("src/client/client.ts", `import { Api } from "#rpc/api"`)))
    refuses(arrows(source("rpc/ids.ts", `import * as Schema from "effect/Schema"`)))
  })

  it("shows in each import whether it leaves the room", () => {
    const path = "src/server/features/rooms/frames.ts"
    refuses(
      importForms(source(path, `import { Rooms } from "../../../../sql/rooms.ts"`)),
      `${path}:1 import another room as #room/name, not ../../../../sql/rooms.ts`
    )
    refuses(
      importForms(source(path, `import { Hub } from "../../links/hub.ts"`)),
      `${path}:1 import another room as #room/name, not ../../links/hub.ts`
    )
    refuses(
      importForms(source(path, `let saves: typeof import("#server/features/saves/service")`)),
      `${path}:1 import inside a room by a relative path, not #server/features/saves/service`
    )
    refuses(importForms(source(path, `import { Saves } from "../saves/service.ts"`)))
    refuses(importForms(source("src/server/app.ts", `import { Hub } from "./links/hub.ts"`)))
    holds(sources.flatMap(importForms))
  })

  it("finds no cycle of imports", () => {
    const cycle = [
      source("rpc/a.ts", `import { b } from "./b.ts"`),
      source("rpc/b.ts", `import { c } from "#rpc/c"\nimport { d } from "./d.ts"`),
      source("rpc/c.ts", `import type { A } from "./a.ts"`),
      source("rpc/d.ts", `import { c } from "./c.ts"`)
    ]
    refuses(cycles(cycle), "rpc/c.ts:1 import cycle: rpc/a.ts -> rpc/b.ts -> rpc/c.ts -> rpc/a.ts")
    holds(cycles(sources))
  })

  it("finds no cycle between folders", () => {
    const apart = [
      source("entities/room/entity.ts", `import { seats } from "../channel/state.ts"`),
      source("entities/room/state.ts", ""),
      source("entities/channel/state.ts", ""),
      source("entities/channel/entity.ts", `import { closed } from "../room/state.ts"`)
    ]
    refuses(
      folderCycles(apart),
      "entities/channel/entity.ts:1 folder cycle: entities/room -> entities/channel -> entities/room"
    )
    refuses(cycles(apart))
    refuses(
      folderCycles([
        source("src/dashboard/views/live.tsx", `import { Page } from "../parts/page.tsx"`),
        source("src/dashboard/parts/page.tsx", `import { Live } from "../views/live.tsx"`)
      ]),
      "src/dashboard/parts/page.tsx:1 folder cycle: src/dashboard/views -> src/dashboard/parts -> " +
        "src/dashboard/views"
    )
    refuses(
      folderCycles([
        source("test/support/room.ts", `import { load } from "../bench/load.ts"`),
        source("test/bench/load.ts", `import { room } from "../support/room.ts"`)
      ]),
      "test/bench/load.ts:1 folder cycle: test/support -> test/bench -> test/support"
    )
    holds(folderCycles(sources))
  })
})

describe("language", () => {
  it("finds no hidden clock, randomness or environment", () => {
    const path = "src/saves.ts"
    refuses(
      hiddenInputs(source(path, "const now = () => Date.now()")),
      `${path}:1 no Date.now: use Clock.currentTimeMillis`
    )
    refuses(
      hiddenInputs(source(path, "\nnew Date(0)")),
      `${path}:2 no Date: use DateTime or Clock of effect`
    )
    refuses(
      hiddenInputs(source(path, `globalThis.process["env"].PORT`)),
      `${path}:1 no process.env: use Config of effect, in src/server/platform/settings`
    )
    refuses(hiddenInputs(source(path, `/** Not Math.random(). */ "Date.now()"`)))
    refuses(hiddenInputs(source("test/bench/load.ts", "performance.now()")))
    holds(sources.flatMap(hiddenInputs))
  })

  it("lets tests wait on state, never on time", () => {
    const path = "test/saves.test.ts"
    const instead = "use a wait on state, or TestClock.adjust"
    refuses(
      hiddenInputs(source(path, `setTimeout(() => {}, 5)\nEffect.sleep("1 second")`)),
      `${path}:1 no setTimeout: ${instead}`,
      `${path}:2 no Effect.sleep: ${instead}`
    )
    refuses(
      hiddenInputs(source(path, `import { setTimeout } from "node:timers/promises"`)),
      `${path}:1 no node:timers/promises: ${instead}`
    )
    refuses(hiddenInputs(source(path, "yield* pause(50)")), `${path}:1 no pause: ${instead}`)
    refuses(hiddenInputs(source(path, "socket.pause()")))
    refuses(hiddenInputs(source("src/hub.ts", `Effect.sleep("1 second")`)))
  })

  it("never silences the compiler", () => {
    const path = "src/saves.ts"
    refuses(
      types(source(path, "let a: Array<any> = []\nlet any = <T>(b: T) => b as any")),
      `${path}:1 no any: decode, or say the type`,
      `${path}:2 no any: decode, or say the type`
    )
    refuses(
      types(source(path, "let a = b as unknown as string")),
      `${path}:1 no cast that silences the compiler`
    )
    refuses(types(source(path, `// any\nlet a = ["any"] as const`)))
    holds(sources.flatMap(types))
  })

  it("leaves nothing unfinished", () => {
    const path = "src/saves.ts"
    refuses(
      marks(source(path, "/**\n * Saves. TODO: quota\n */\n// @ts-expect-error\nlet a = 'FIXME'")),
      `${path}:2 no TODO: do it or leave it`,
      `${path}:4 no @ts-expect-error: do it or leave it`
    )
    holds(sources.flatMap(marks))
  })

  it("finds no path of one machine", () => {
    const path = ["", "work", "main"].join("/")
    refuses(
      machinePaths(file("README.md", `\nRun it in ${path}.`)),
      `README.md:2 ${path.slice(0, 6)} is a path of one machine`
    )
    refuses(machinePaths(file("README.md", "See https://example.com/home/games.")))
    holds(files.flatMap(machinePaths))
  })
})

describe("prose", () => {
  // The rules themselves name what they forbid.
  const rules = ["test/house/house.ts", "test/house/house.test.ts"]
  const readable = files.filter(
    ({ path }) => !rules.includes(path) && !path.startsWith("test/bench/peers/")
  )
  const paths = new Set(files.map(({ path }) => path))

  it("finds no word of a private language", () => {
    refuses(
      wordings(file("docs/rooms.md", "Rooms.\nThe player is told so.")),
      `docs/rooms.md:2 do not write "told": name who sends what: notified, returns, reports`
    )
    refuses(wordings(file("src/a.ts", "// Begins anew")), `src/a.ts:1 do not write "anew": again`)
    const banned: ReadonlyArray<readonly [string, string]> = [
      ["It tells why", "tells"],
      ["whoever asks", "whoever"],
      ["epochs, numbers that only grow", "numbers that only grow"],
      ["This one is deaf and dumb", "deaf"],
      ["The sign-in has come to nothing", "come to nothing"],
      ["/** Which runners\n * are out. */", "runners are out"],
      ["const refusedAnew = 1", "Anew"],
      ["const runnersAreOut = 1", "runners Are Out"],
      ["select is_deaf from t", "deaf"]
    ]
    for (const [text, found] of banned) {
      assert.include(report(wordings(file("src/a.ts", text))), `do not write "${found}"`)
    }
    refuses(wordings(file("docs/rooms.md", "The room sends its state to the player again.")))
    holds(readable.flatMap(wordings))
  })

  it("names each test so that it reads alone", () => {
    const problem = "start the name of this test with a subject or a verb"
    const path = "test/sql/rooms.test.ts"
    refuses(
      titles(file(path, `it("that fails", f)\nit.effect(\n  "of a room fails", f)`)),
      `${path}:1 ${problem}: that fails`,
      `${path}:2 ${problem}: of a room fails`
    )
    refuses(
      titles(file(path, `it.each(rooms)("may be full", f)`)),
      `${path}:1 ${problem}: may be full`
    )
    refuses(titles(file(path, `it("fails", f)\nedit("that one")`)))
    holds(readable.flatMap(titles))
  })

  it("cites only what is in the repository", () => {
    const path = "docs/guides/rooms.md"
    const known = new Set([path, "docs/architecture.md", "src/server/links/hub.ts"])
    const cites = (text: string) => citations(file(path, text), known)
    refuses(
      cites("See spec section 4.3.\nAnd decisions 3.7.13."),
      `${path}:1 "spec section" is not in this repository: say the fact, or cite docs/`,
      `${path}:2 "decisions 3.7" is not in this repository: say the fact, or cite docs/`
    )
    refuses(cites("See `links/nub.ts`."), `${path}:1 links/nub.ts does not exist`)
    refuses(cites("See `../saves.md`."), `${path}:1 ../saves.md does not exist`)
    refuses(cites("See `src/server/nubs`."), `${path}:1 src/server/nubs does not exist`)
    refuses(cites("See `links/hub.ts`, `src/server/links/` and `../architecture.md`."))
    holds(readable.flatMap((it) => citations(it, paths)))
  })
})
