/** Dialog before a push: the difference to the live config. A push that lost a race fails. */
import { useState } from "preact/hooks"
import { ask, type Response } from "../core/api.ts"
import { texts } from "../core/texts.ts"
import { Cancel, Dialog } from "../parts/dialog.tsx"
import { Diff } from "../parts/diff.tsx"
import { Form } from "../parts/form.tsx"
import { useCurrentView } from "../parts/current-view.ts"

const { config: own } = texts

const route = "PUT /v1/projects/:projectId/environments/:env/config"
type Pushed = Response<typeof route>

const Warnings = ({ close, pushed }: { readonly pushed: Pushed; readonly close: () => void }) => (
  <Dialog title={own.pushed} close={close}>
    <p>{own.warnings}</p>
    <ul>
      {pushed.warnings.map(({ message, path }) => (
        <li key={path}>
          <code>{path}</code> {message}
        </li>
      ))}
    </ul>
  </Dialog>
)

export const PushDialog = ({
  after,
  before,
  close,
  done,
  etag
}: {
  readonly before: string
  readonly after: string
  readonly etag: string | undefined
  readonly close: () => void
  readonly done: () => void
}) => {
  const { env, params } = useCurrentView()
  const [pushed, setPushed] = useState<Pushed | undefined>(undefined)
  if (pushed !== undefined) return <Warnings pushed={pushed} close={close} />
  const isSame = before === after
  return (
    <Dialog title={own.pushTitle(texts.environments[env])} wide close={close}>
      {isSame ? <p>{own.same}</p> : <Diff before={before} after={after} label={own.difference} />}
      {env === "production" && <p class="notice red">{own.production}</p>}
      <Form
        submit={own.push}
        after={<Cancel close={close} />}
        send={async () => {
          const result = await ask(route, {
            params,
            // The service checks the document.
            body: JSON.parse(after),
            headers: etag === undefined ? {} : { "if-match": etag }
          })
          done()
          if (result.warnings.length > 0) setPushed(result)
          else close()
        }}
      >
        <p class="soft small">{own.pushText}</p>
      </Form>
    </Dialog>
  )
}
