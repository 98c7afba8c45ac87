/** The config document in an editor that knows its schema: completion, hovers and problems while one types. */
import { useEffect, useRef, useState } from "preact/hooks"
import { texts } from "../../core/texts.ts"
import { Button, Panel } from "../../parts/basics.tsx"
import { type ConfigEditor, makeEditor, type Problem } from "./code.ts"

const { config: own } = texts

/** CodeMirror adds its styles to a shadow root without inline styles, which the page's policy forbids. */
const useEditor = (text: string) => {
  const host = useRef<HTMLDivElement>(null)
  const editor = useRef<ConfigEditor | undefined>(undefined)
  const [problems, setProblems] = useState<ReadonlyArray<Problem>>([])
  const [changed, setChanged] = useState(false)
  useEffect(() => {
    if (host.current === null) return
    const root = host.current.shadowRoot ?? host.current.attachShadow({ mode: "open" })
    const made = makeEditor({
      root,
      text,
      label: own.tabs.document,
      onProblems: setProblems,
      onChange: (now) => setChanged(now !== text)
    })
    editor.current = made
    return () => made.close()
  }, [text])
  return { changed, editor, host, problems }
}

const Editor = ({ offer, text }: Readonly<{ text: string; offer: (text: string) => void }>) => {
  const { changed, editor, host, problems } = useEditor(text)
  const isValid = problems.every(({ severity }) => severity !== "error")
  return (
    <Panel
      title={own.tabs.document}
      lead={own.editorLead}
      actions={
        <>
          <Button kind="small" disabled={!changed} onClick={() => editor.current?.reset(text)}>
            {own.discard}
          </Button>
          <Button
            kind="primary small"
            disabled={!changed || !isValid}
            onClick={() => editor.current !== undefined && offer(editor.current.text())}
          >
            {own.review}
          </Button>
        </>
      }
    >
      <div ref={host} class="editor-host" />
      {problems.length > 0 && (
        <ul class="problems" role="status">
          {problems.slice(0, 20).map(({ line, message }, index) => (
            <li key={index}>
              <button type="button" class="link" onClick={() => editor.current?.goTo(line)}>
                {own.line(line)}
              </button>{" "}
              {message}
            </li>
          ))}
        </ul>
      )}
    </Panel>
  )
}

export default Editor
