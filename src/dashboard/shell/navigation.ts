/** The views of an environment, in the order of the navigation. */
import type { ComponentType } from "preact"
import type { IconName } from "../parts/icon.tsx"
import { texts } from "../core/texts.ts"
import { Audit } from "../views/audit.tsx"
import { Config } from "../views/config.tsx"
import { Functions } from "../views/functions/functions.tsx"
import { Hosting } from "../views/hosting.tsx"
import { Keys } from "../views/keys.tsx"
import { Live } from "../views/live.tsx"
import { Moderation } from "../views/moderation.tsx"
import { Overview } from "../views/overview/overview.tsx"
import { Players } from "../views/players.tsx"
import { Playground } from "../views/playground/playground.tsx"
import { Settings } from "../views/settings.tsx"
import { Share } from "../views/share.tsx"
import { Signin } from "../views/signin.tsx"

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
    views: [
      view("overview", Overview),
      view("players", Players),
      view("live", Live),
      view("moderation", Moderation)
    ]
  },
  {
    title: texts.groups.build,
    views: [
      view("playground", Playground),
      view("config", Config),
      view("signin", Signin),
      view("hosting", Hosting),
      view("functions", Functions),
      view("share", Share),
      view("keys", Keys)
    ]
  },
  {
    title: texts.groups.project,
    views: [view("audit", Audit), view("settings", Settings)]
  }
]

/** The developer's own pages, which belong to no project. */
export const ownPages = (["money", "account"] as const).map((word) => ({
  href: `/dashboard/${word}`,
  icon: word,
  text: texts.pages[word]
}))

export const views: ReadonlyArray<View> = groups.flatMap((group) => group.views)
