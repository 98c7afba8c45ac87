/** The views of an environment, in the order of the navigation. */
import type { ComponentType } from "preact"
import type { IconName } from "../parts/icon.tsx"
import { texts } from "../core/texts.ts"
import { Overview } from "../views/overview.tsx"
import { Players } from "../views/players.tsx"

/** One view; its word is in the address. */
export interface View {
  readonly word: string
  readonly text: string
  readonly icon: IconName
  readonly view: ComponentType
}

/** A heading with the views under it. */
export interface ViewGroup {
  readonly title: string
  readonly views: ReadonlyArray<View>
}

const { views: names } = texts

const view = (word: keyof typeof names & IconName, component: ComponentType): View => ({
  word,
  text: names[word],
  icon: word,
  view: component
})

export const groups: ReadonlyArray<ViewGroup> = [
  {
    title: texts.groups.game,
    views: [view("overview", Overview), view("players", Players)]
  }
]

export const views: ReadonlyArray<View> = groups.flatMap((group) => group.views)
