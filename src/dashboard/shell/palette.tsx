/** Search by Ctrl+K: views, projects, and players by id, email or name. */
import { useEffect, useState } from "preact/hooks"
import { ask } from "../core/api.ts"
import { Dialog } from "../parts/dialog.tsx"
import { Icon, type IconName } from "../parts/icon.tsx"
import { addressOf, useCurrentView } from "../parts/current-view.ts"
import { projects } from "../core/state.ts"
import { texts } from "../core/texts.ts"
import { ownPages, views } from "./navigation.ts"

interface Hit {
  readonly href: string
  readonly icon: IconName
  readonly text: string
  readonly note: string
}

const waitMillis = 200
const hitsMax = 8

const matches = (text: string, typed: string) => text.toLowerCase().includes(typed.toLowerCase())

/** Players that match, some time after the last key. */
const usePlayers = (typed: string): ReadonlyArray<Hit> => {
  const { env, params, project } = useCurrentView()
  const [found, setFound] = useState<ReadonlyArray<Hit>>([])
  useEffect(() => {
    if (typed.trim().length < 2) return setFound([])
    const stop = new AbortController()
    const search = async () => {
      const query = { q: typed.trim(), limit: hitsMax }
      const { players } = await ask("GET /v1/projects/:projectId/environments/:env/players", {
        params,
        query,
        signal: stop.signal
      })
      setFound(
        players.map(({ displayName, id }) => ({
          href: addressOf(project, env, "players", id),
          icon: "players",
          text: displayName,
          note: id
        }))
      )
    }
    // The views and projects stay when the search for players fails.
    const timer = setTimeout(() => search().catch(() => setFound([])), waitMillis)
    return () => {
      clearTimeout(timer)
      stop.abort()
    }
  }, [typed, project.id, env])
  return found
}

export const Palette = ({ close }: { readonly close: () => void }) => {
  const { env, project, view } = useCurrentView()
  const [typed, setTyped] = useState("")
  const players = usePlayers(typed)
  const hits: ReadonlyArray<Hit> = [
    ...views.flatMap(({ text, word }) =>
      matches(text, typed)
        ? [{ href: addressOf(project, env, word), icon: word, text, note: "" }]
        : []
    ),
    ...ownPages.flatMap((page) => (matches(page.text, typed) ? [{ ...page, note: "" }] : [])),
    ...(projects.value ?? []).flatMap((it): ReadonlyArray<Hit> =>
      matches(it.name, typed)
        ? [{ href: addressOf(it, env, view), icon: "hosting", text: it.name, note: texts.project }]
        : []
    )
  ].slice(0, typed === "" ? undefined : hitsMax)
  return (
    <Dialog title={texts.shell.searchTitle} close={close}>
      <input
        class="input"
        aria-label={texts.shell.searchTitle}
        placeholder={texts.shell.searchHint}
        autofocus
        value={typed}
        onInput={({ currentTarget }) => setTyped(currentTarget.value)}
      />
      <ul class="palette">
        {[...players, ...hits].map(({ href, icon, note, text }) => (
          <li key={href}>
            <a href={href} onClick={close}>
              <Icon name={icon} />
              {text} <span class="soft small">{note}</span>
            </a>
          </li>
        ))}
      </ul>
    </Dialog>
  )
}
