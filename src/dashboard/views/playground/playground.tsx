/** Playground: players side by side in one page. The code of the players is loaded when needed. */
import { lazy } from "preact-iso"
import { texts } from "../../core/texts.ts"
import { Title } from "../../parts/basics.tsx"

const Players = lazy(() => import("./players.tsx"))

export const Playground = () => (
  <div class="stack">
    <Title text={texts.playground.title} lead={texts.playground.lead} />
    <Players />
  </div>
)
