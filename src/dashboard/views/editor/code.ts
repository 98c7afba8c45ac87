/** CodeMirror with the JSON language service of VS Code, under the schema that the service publishes. */
import { autocompletion, completionKeymap } from "@codemirror/autocomplete"
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands"
import { json } from "@codemirror/lang-json"
import { defaultHighlightStyle, foldGutter, syntaxHighlighting } from "@codemirror/language"
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint"
import { EditorState, type Extension } from "@codemirror/state"
import { EditorView, keymap, lineNumbers } from "@codemirror/view"
import { completionsWith, type Documents, makeDocuments } from "./schema.ts"

/** Problem in a line. */
export interface Problem {
  readonly line: number
  readonly message: string
  readonly severity: "error" | "warning"
}

export interface ConfigEditor {
  readonly text: () => string
  readonly reset: (text: string) => void
  readonly goTo: (line: number) => void
  readonly close: () => void
}

interface Options {
  readonly root: ShadowRoot
  readonly text: string
  readonly label: string
  readonly onProblems: (problems: ReadonlyArray<Problem>) => void
  readonly onChange: (text: string) => void
}

const waitMillis = 250

/** Custom properties reach into the shadow root, so the editor has the colours of the page. */
const look = EditorView.theme({
  "&": { height: "100%", backgroundColor: "var(--panel)", color: "var(--text)" },
  ".cm-scroller": { fontFamily: "var(--mono)", fontSize: "13px", lineHeight: "20px" },
  ".cm-gutters": {
    backgroundColor: "var(--panel)",
    color: "var(--text-soft)",
    borderRight: "1px solid var(--line)"
  },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--accent-soft) !important"
  },
  ".cm-tooltip": {
    backgroundColor: "var(--panel)",
    color: "var(--text)",
    border: "1px solid var(--line-strong)"
  },
  ".cm-tooltip-autocomplete ul li[aria-selected]": {
    backgroundColor: "var(--accent-soft)",
    color: "var(--text)"
  },
  ".cm-content *": { color: "inherit" }
})

/** Checks the text some time after the last key. */
const checking = (documents: Documents, { onChange, onProblems }: Options): Extension => {
  let timer: ReturnType<typeof setTimeout> | undefined
  const check = async (view: EditorView): Promise<void> => {
    const { doc } = view.state
    const found = await documents.problems(doc.toString())
    if (view.state.doc !== doc) return
    view.dispatch(setDiagnostics(view.state, Array.from(found)))
    onProblems(
      found.map(({ from, message, severity }) => ({
        line: doc.lineAt(from).number,
        message,
        severity
      }))
    )
  }
  return EditorView.updateListener.of(({ docChanged, view }) => {
    if (!docChanged) return
    onChange(view.state.doc.toString())
    clearTimeout(timer)
    timer = setTimeout(() => void check(view), waitMillis)
  })
}

export const makeEditor = (options: Options): ConfigEditor => {
  const documents = makeDocuments()
  const extensions = [
    lineNumbers(),
    foldGutter(),
    history(),
    json(),
    lintGutter(),
    syntaxHighlighting(defaultHighlightStyle),
    autocompletion({ override: [completionsWith(documents)] }),
    keymap.of([...defaultKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap]),
    EditorView.contentAttributes.of({ "aria-label": options.label }),
    EditorView.lineWrapping,
    checking(documents, options),
    look
  ]
  const stateOf = (text: string) => EditorState.create({ doc: text, extensions })
  const view = new EditorView({
    state: stateOf(options.text),
    parent: options.root,
    root: options.root
  })
  return {
    text: () => view.state.doc.toString(),
    reset: (text) => {
      view.setState(stateOf(text))
      options.onChange(text)
      options.onProblems([])
    },
    goTo: (line) => {
      const { from } = view.state.doc.line(Math.min(line, view.state.doc.lines))
      view.dispatch({ selection: { anchor: from }, scrollIntoView: true })
      view.focus()
    },
    close: () => view.destroy()
  }
}
