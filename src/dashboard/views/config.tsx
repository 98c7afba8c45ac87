/** Config of the environment: features, the document with its editor, and its history. */
import { lazy } from "preact-iso"
import { useState } from "preact/hooks"
import { askTagged } from "../core/api.ts"
import { notify } from "../core/state.ts"
import { texts } from "../core/texts.ts"
import { useLoad } from "../parts/load.ts"
import { useCurrentView } from "../parts/current-view.ts"
import { Loaded } from "../parts/load-states.tsx"
import { Title } from "../parts/basics.tsx"
import { Tabs, useTab } from "../parts/tabs.tsx"
import type { ViewEntry } from "../parts/view-entry.ts"
import { PushDialog } from "./config-push.tsx"
import { Features } from "./features.tsx"
import { Versions } from "./versions.tsx"

const { config: own } = texts

const route = "GET /v1/projects/:projectId/environments/:env/config"

const Editor = lazy(() => import("./editor/editor.tsx"))

const tabs = ["features", "document", "history"] as const

const textOf = (document: unknown): string => `${JSON.stringify(document, null, 2)}\n`

/** The document in force with its tag, and a text that may be about to replace it. */
const useDocument = () => {
  const { env, params, project } = useCurrentView()
  const load = useLoad(`${project.id}/${env}/config-tagged`, async (signal) => {
    const { body, etag } = await askTagged(route, { params, signal })
    return { text: textOf(body), etag }
  })
  const [offered, setOffered] = useState<string | undefined>(undefined)
  return { load, offered, setOffered }
}

const Config = () => {
  const [chosen, choose] = useTab(tabs)
  const { load, offered, setOffered } = useDocument()
  return (
    <div class="stack">
      <Title text={own.title} lead={own.lead}>
        <Tabs label={own.title} names={tabs} texts={own.tabs} chosen={chosen} choose={choose} />
      </Title>
      <Loaded of={load}>
        {({ etag, text }) => (
          <>
            {chosen === "features" && <Features text={text} offer={setOffered} />}
            {chosen === "document" && <Editor key={etag} text={text} offer={setOffered} />}
            {chosen === "history" && <Versions text={text} offer={setOffered} />}
            {offered !== undefined && (
              <PushDialog
                before={text}
                after={offered}
                etag={etag}
                close={() => setOffered(undefined)}
                done={() => {
                  load.refresh()
                  notify(own.pushed)
                }}
              />
            )}
          </>
        )}
      </Loaded>
    </div>
  )
}

export const page: ViewEntry = { word: "config", text: own.title, view: Config }
