/** Playground: players side by side in one page. The code of the players is loaded when needed. */
import { lazy } from "preact-iso"
import { texts } from "../../core/texts.ts"
import { Title } from "../../parts/basics.tsx"
import type { ViewEntry } from "../../parts/view-entry.ts"

const Players = lazy(() => import("./players.tsx"))

const Playground = () => (
  <div class="stack">
    <Title text={texts.playground.title} lead={texts.playground.lead} />
    <Players />
  </div>
)

export const page: ViewEntry = {
  word: "playground",
  text: texts.playground.title,
  view: Playground
}
