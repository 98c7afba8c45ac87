/** Two to four players of the environment, each with its own session, which ends with the page. */
import { useState } from "preact/hooks"
import { texts } from "../../core/texts.ts"
import { Button } from "../../parts/basics.tsx"
import { useRead } from "../../parts/read.ts"
import { addressOf, useCurrentView } from "../../parts/current-view.ts"
import { Empty, Loaded } from "../../parts/load-states.tsx"
import { Player } from "./player.tsx"

const { playground: own } = texts

const names = ["Ada", "Bob", "Cleo", "Dora"]

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

/** The keys of the modes in a config; `default` where it has none. */
const modesOf = (config: unknown): ReadonlyArray<string> => {
  const section = isObject(config) ? config["multiplayer"] : undefined
  const list = isObject(section) ? section["modes"] : undefined
  const keys = (Array.isArray(list) ? list : []).flatMap((mode: unknown) =>
    isObject(mode) && typeof mode["key"] === "string" ? [mode["key"]] : []
  )
  return keys.length === 0 ? ["default"] : keys
}

const Side = ({
  modes,
  publishableKey
}: {
  readonly publishableKey: string
  readonly modes: ReadonlyArray<string>
}) => {
  const [shown, setShown] = useState(2)
  const [code, setCode] = useState<string | undefined>(undefined)
  return (
    <>
      <div class="players-side">
        {names.slice(0, shown).map((name) => (
          <Player
            key={name}
            name={name}
            publishableKey={publishableKey}
            modes={modes}
            code={code}
            onRoom={(next) => next !== undefined && setCode(next)}
          />
        ))}
      </div>
      <div class="row">
        {shown < names.length && <Button onClick={() => setShown(shown + 1)}>{own.more}</Button>}
        {shown > 1 && <Button onClick={() => setShown(shown - 1)}>{own.fewer}</Button>}
      </div>
    </>
  )
}

const Players = () => {
  const { env, project } = useCurrentView()
  const load = useRead("GET /v1/projects/:projectId/environments/:env/config")
  const { keys = [] } = project.environments.find(({ name }) => name === env) ?? {}
  const key = keys.find(({ kind, plain }) => kind === "publishable" && plain !== null)?.plain
  if (key === undefined || key === null) {
    return (
      <Empty title={own.noKey} text={own.noKeyText}>
        <a class="button" href={addressOf(project, env, "keys")}>
          {texts.keys.title}
        </a>
      </Empty>
    )
  }
  return (
    <>
      {env === "production" && <p class="notice amber">{own.production}</p>}
      <Loaded of={load}>
        {(config) => <Side key={key} publishableKey={key} modes={modesOf(config)} />}
      </Loaded>
    </>
  )
}

export default Players
