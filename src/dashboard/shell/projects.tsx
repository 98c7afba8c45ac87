/** Page of all projects of the developer, and of a new one with its keys, which are shown once. */
import { useState } from "preact/hooks"
import type { Response } from "../core/api.ts"
import { ask } from "../core/api.ts"
import { Dialog } from "../parts/dialog.tsx"
import { Field, Form } from "../parts/form.tsx"
import { useLoad } from "../parts/load.ts"
import { addressOf } from "../parts/current-view.ts"
import { Empty, Loaded } from "../parts/load-states.tsx"
import { Button, Copyable, Panel, Time, Title } from "../parts/basics.tsx"
import { notify, refreshProjects } from "../core/state.ts"
import { texts } from "../core/texts.ts"
import { OwnPage } from "./own-page.tsx"

const { projects: own } = texts

type Created = Response<"POST /v1/projects">

const CreatedKeys = ({ close, created }: Readonly<{ created: Created; close: () => void }>) => (
  <Dialog title={own.created(created.project.name)} close={close}>
    <p>{own.keysOnce}</p>
    {(["development", "production"] as const).map((env) => (
      <div class="stack" key={env}>
        <h3>{texts.environments[env]}</h3>
        <Copyable text={created.plainKeys[env].publishableKey} label={texts.keyKinds.publishable} />
        <Copyable text={created.plainKeys[env].secretKey} label={texts.keyKinds.secret} />
      </div>
    ))}
    <div class="row end">
      <a class="button primary" href={addressOf(created.project, "development", "overview")}>
        {own.open}
      </a>
    </div>
  </Dialog>
)

const DeletedProjects = ({
  deleted,
  refresh
}: {
  readonly deleted: Response<"GET /v1/projects">["deleted"]
  readonly refresh: () => void
}) => {
  const restore = async (projectId: string) => {
    await ask("POST /v1/projects/:projectId/restore", { params: { projectId } })
    await refreshProjects()
    refresh()
    notify(own.restored)
  }
  if (deleted.length === 0) return null
  return (
    <Panel title={own.deleted}>
      <ul class="timeline">
        {deleted.map(({ id, name, restorableUntil }) => (
          <li key={id}>
            <div class="row">
              <strong>{name}</strong>
              <span class="soft">
                {own.removedIn} <Time at={restorableUntil} />
              </span>
              <span class="grow" />
              <Button kind="small" onClick={() => restore(id)}>
                {own.restore}
              </Button>
            </div>
          </li>
        ))}
      </ul>
    </Panel>
  )
}

const ProjectList = ({ list }: { readonly list: Response<"GET /v1/projects">["projects"] }) =>
  list.length === 0 ? (
    <Empty title={own.none} text={own.noneText} />
  ) : (
    <ul class="timeline">
      {list.map((project) => (
        <li key={project.id}>
          <div class="row">
            <a href={addressOf(project, "development", "overview")}>
              <strong>{project.name}</strong>
            </a>
            <code class="soft">{project.slug}</code>
            <span class="grow" />
            <span class="soft small">
              {own.since} <Time at={project.createdAt} />
            </span>
          </div>
        </li>
      ))}
    </ul>
  )

export const Projects = () => {
  const load = useLoad("projects", (signal) => ask("GET /v1/projects", { signal }))
  const [created, setCreated] = useState<Created | undefined>(undefined)
  return (
    <OwnPage page="projects">
      <Title text={own.title} lead={own.lead} />
      <Loaded of={load}>
        {({ deleted, projects: list }) => (
          <>
            <Panel title={own.yours}>
              <ProjectList list={list} />
            </Panel>
            <DeletedProjects deleted={deleted} refresh={load.refresh} />
          </>
        )}
      </Loaded>
      <Panel title={own.create} lead={own.createLead}>
        <div class="body">
          <Form
            submit={own.create}
            send={async ({ name = "", slug }) => {
              const body = { name, ...(slug === undefined ? {} : { slug }) }
              const created = await ask("POST /v1/projects", { body })
              await refreshProjects()
              load.refresh()
              setCreated(created)
            }}
          >
            <Field label={own.name} name="name" maxLength={80} required />
            <Field
              label={own.slugField}
              name="slug"
              hint={own.slugHint}
              maxLength={40}
              pattern="(?=.{3,40}$)[a-z0-9]+(-[a-z0-9]+)*"
              title={own.slugRule}
              autocomplete="off"
            />
          </Form>
        </div>
      </Panel>
      {created !== undefined && (
        <CreatedKeys created={created} close={() => setCreated(undefined)} />
      )}
    </OwnPage>
  )
}
