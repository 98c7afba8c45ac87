/** The project itself: its name, its ids, and its end. */
import { useState } from "preact/hooks"
import { useLocation } from "preact-iso"
import { ask } from "../core/api.ts"
import { notify, refreshProjects } from "../core/state.ts"
import { texts } from "../core/texts.ts"
import { Confirm } from "../parts/dialog.tsx"
import { Field, Form } from "../parts/form.tsx"
import { useCurrentView } from "../parts/current-view.ts"
import { Button, Copyable, Facts, Panel, Time, Title } from "../parts/basics.tsx"
import type { ViewEntry } from "../parts/view-entry.ts"

const { settings: own } = texts

const Settings = () => {
  const { project } = useCurrentView()
  const { route } = useLocation()
  const [deleting, setDeleting] = useState(false)
  const params = { projectId: project.id }
  return (
    <div class="stack">
      <Title text={own.title} lead={own.lead} />
      <Panel title={own.project}>
        <Facts
          of={[
            [own.id, <Copyable text={project.id} label={own.id} />],
            [own.slug, <Copyable text={project.slug} label={own.slug} />],
            [texts.players.created, <Time at={project.createdAt} />]
          ]}
        />
      </Panel>
      <Panel title={own.rename} lead={own.renameLead}>
        <div class="body">
          <Form
            submit={own.rename}
            send={async ({ name = "" }) => {
              await ask("PATCH /v1/projects/:projectId/", { params, body: { name } })
              await refreshProjects()
              notify(own.renamed)
            }}
          >
            <Field label={own.name} name="name" value={project.name} maxLength={80} required />
          </Form>
        </div>
      </Panel>
      <Panel title={own.delete} lead={own.deleteLead}>
        <div class="body row end">
          <Button kind="danger" onClick={() => setDeleting(true)}>
            {own.delete}
          </Button>
        </div>
      </Panel>
      {deleting && (
        <Confirm
          title={own.deleteTitle(project.name)}
          action={own.delete}
          name={project.slug}
          close={() => setDeleting(false)}
          run={async () => {
            await ask("DELETE /v1/projects/:projectId/", { params })
            route("/dashboard/projects")
            await refreshProjects()
            notify(own.deleted)
          }}
        >
          <p>{own.deleteText}</p>
        </Confirm>
      )}
    </div>
  )
}

export const page: ViewEntry = { word: "settings", text: own.title, view: Settings }
