/** The views of an environment, in the order of the navigation. */
import { texts } from "../core/texts.ts"
import type { ViewEntry } from "../parts/view-entry.ts"
import { page as audit } from "../views/audit.tsx"
import { page as config } from "../views/config.tsx"
import { page as functions } from "../views/functions/functions.tsx"
import { page as hosting } from "../views/hosting.tsx"
import { page as keys } from "../views/keys.tsx"
import { page as live } from "../views/live.tsx"
import { page as moderation } from "../views/moderation.tsx"
import { page as overview } from "../views/overview/overview.tsx"
import { page as players } from "../views/players.tsx"
import { page as playground } from "../views/playground/playground.tsx"
import { page as settings } from "../views/settings.tsx"
import { page as share } from "../views/share.tsx"
import { page as signin } from "../views/signin.tsx"

/** A heading with the views under it. */
export interface ViewGroup {
  readonly title: string
  readonly views: ReadonlyArray<ViewEntry>
}

export const groups: ReadonlyArray<ViewGroup> = [
  { title: texts.groups.game, views: [overview, players, live, moderation] },
  {
    title: texts.groups.build,
    views: [playground, config, signin, hosting, functions, share, keys]
  },
  { title: texts.groups.project, views: [audit, settings] }
]

/** The developer's own pages, which belong to no project. */
export const ownPages = (["money", "account"] as const).map((word) => ({
  href: `/dashboard/${word}`,
  icon: word,
  text: texts.pages[word]
}))

export const views: ReadonlyArray<ViewEntry> = groups.flatMap((group) => group.views)
