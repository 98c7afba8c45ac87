/** Games with React: one of Next, with a server and a client component, and one of Vite in strict mode. */

/** Enters a room by the hook while it is shown, and shows it; a click sets the round. */
const roundButton = `
export function Round({ client }: { readonly client: Client }) {
  const [shows, setShows] = useState(0)
  useEffect(() => setShows((count) => count + 1), [])
  const { error, room } = useEnteredRoom<{ round: number }>(
    (signal) => client.rooms.create({ mode: "default" }, { signal }),
    [client]
  )
  const player = usePlayer(client)
  const view = useRoom(room)
  if (isError(error)) return <p id="game">{error.code}</p>
  if (player === null || view === null) return <p id="game">Entering</p>
  return (
    <button id="game" onClick={() => room?.setState({ round: 7 })}>
      {"Round " + (view.state.round ?? 0) + ", players " + view.players.length + ", shown " + shows}
    </button>
  )
}
`

const imports = `
import { type Client, createClient, isError } from "@player-backend/client"
import { useEnteredRoom, usePlayer, useRoom } from "@player-backend/client/react"
`

/** A game of Vite. The address of its page names the service. */
export const viteGame: Readonly<Record<string, string>> = {
  "package.json": `{ "name": "vite-game", "type": "module" }`,
  "vite.config.js": `
import react from "@vitejs/plugin-react"
export default { base: "./", plugins: [react()] }
`,
  "index.html": `<!doctype html>
<div id="root"></div>
<script type="module" src="./main.tsx"></script>
`,
  "main.tsx": `${imports}
import { StrictMode, useEffect, useState } from "react"
import { createRoot } from "react-dom/client"
${roundButton}
const query = new URL(location.href).searchParams
const client = createClient({ baseUrl: query.get("baseUrl") ?? "", key: query.get("key") ?? "" })
const root = createRoot(document.querySelector("#root")!)
root.render(<StrictMode><Round client={client} /></StrictMode>)
`
}

/** A game of Next: the server component plays as a guest of each request. */
export const nextGame: Readonly<Record<string, string>> = {
  "package.json": `{ "name": "next-game", "private": true }`,
  "next.config.ts": `
import { dirname } from "node:path"
export default { turbopack: { root: dirname(process.cwd()) } }
`,
  "tsconfig.json": JSON.stringify({
    compilerOptions: {
      strict: true,
      noEmit: true,
      target: "es2022",
      lib: ["es2022", "dom", "dom.iterable"],
      module: "esnext",
      moduleResolution: "bundler",
      jsx: "react-jsx",
      isolatedModules: true,
      esModuleInterop: true,
      resolveJsonModule: true,
      skipLibCheck: true,
      allowJs: true,
      incremental: false,
      plugins: [{ name: "next" }]
    },
    include: ["**/*.ts", "**/*.tsx", ".next/types/**/*.ts", ".next/dev/types/**/*.ts"],
    exclude: ["node_modules"]
  }),
  "app/layout.tsx": `
import type { ReactNode } from "react"
export default function Layout({ children }: { readonly children: ReactNode }) {
  return <html lang="en"><body>{children}</body></html>
}
`,
  "app/page.tsx": `
import { createClient, memoryStorage } from "@player-backend/client"
import { connection } from "next/server"
import { Game } from "./game"

export default async function Page() {
  await connection()
  const { GAME_KEY: key = "", GAME_URL: baseUrl = "" } = process.env
  const client = createClient({ baseUrl, key, storage: memoryStorage() })
  const { displayName } = await client.sessions.ensure({ displayName: "Ada" })
  const room = await client.rooms.create({ mode: "default" })
  const { players } = room
  await room.leave()
  client.close()
  return (
    <main>
      <p id="server">{displayName + ", players " + players.length}</p>
      <Game baseUrl={baseUrl} gameKey={key} />
    </main>
  )
}
`,
  "app/game.tsx": `"use client"
${imports}
import { useEffect, useMemo, useState } from "react"
${roundButton}
interface GameProps {
  readonly baseUrl: string
  readonly gameKey: string
}

export function Game({ baseUrl, gameKey: key }: GameProps) {
  const client = useMemo(() => createClient({ baseUrl, key }), [baseUrl, key])
  return <Round client={client} />
}
`
}
