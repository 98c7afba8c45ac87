/** Style sheet of the documentation. */
import { tokens } from "../look/tokens.ts"

export const style = `${tokens}
html{scroll-padding-top:76px}
body{display:grid;grid-template:auto 1fr/256px minmax(0,1fr) 224px;grid-template-areas:"head head head" "pages main toc"}
header{grid-area:head;position:sticky;top:0;z-index:2;display:flex;gap:12px;align-items:center;height:60px;padding:0 24px;background:var(--bg);border-bottom:1px solid var(--line)}
.brand{font-weight:650;color:inherit;text-decoration:none;white-space:nowrap}
search{position:relative;flex:1;max-width:480px;margin-left:auto}
input{width:100%;padding:6px 12px;background:var(--soft)}
header button{padding:6px 12px;cursor:pointer}
#menu{display:none}
#results{position:absolute;top:44px;right:0;width:min(560px,92vw);max-height:70vh;overflow:auto;padding:8px;background:var(--bg);border:1px solid var(--line);border-radius:6px;box-shadow:0 8px 32px #0003}
#results a{display:block;padding:8px 12px;border-radius:6px;color:inherit;text-decoration:none}
#results a:hover,#results a:focus{background:var(--soft)}
#results b{display:block;color:var(--link)}
#results small,#results p{color:var(--quiet);font-size:14px;margin:0}
#results p{padding:8px 12px}
#pages{grid-area:pages;position:sticky;top:60px;height:calc(100vh - 60px);overflow:auto;padding:12px 12px 48px 24px;border-right:1px solid var(--line)}
#pages h2,aside h2{font-size:13px;font-weight:650;margin:20px 0 4px;color:var(--quiet)}
#pages ul,aside ul{list-style:none;margin:0;padding:0}
#pages a{display:block;padding:4px 12px;margin-left:-12px;border-radius:6px;font-size:15px;color:inherit;text-decoration:none}
#pages a:hover{background:var(--soft)}
#pages a[aria-current]{background:var(--soft);color:var(--link);font-weight:600}
main{grid-area:main;padding:16px clamp(16px,4vw,56px) 64px;max-width:880px;width:100%;justify-self:center}
main:focus{outline:0}
h1{font-size:32px;line-height:1.25;margin:16px 0}
h2{font-size:23px;line-height:1.3;margin:44px 0 12px}
h3{font-size:18px;margin:32px 0 8px}
main h2,main h3{scroll-margin-top:16px}
main a{text-underline-offset:2px}
:not(pre)>code{background:var(--soft);border-radius:4px;padding:1px 5px;overflow-wrap:anywhere}
pre{position:relative;border:1px solid var(--line)}
.wide{margin:16px 0}
.wide table{font-size:15px;min-width:min(100%,480px)}
.wide td:first-child code{overflow-wrap:normal}
th{color:var(--quiet);font-weight:600}
img{max-width:100%;height:auto;border-radius:6px}
.copy{position:absolute;top:8px;right:8px;font:13px system-ui;padding:2px 8px;cursor:pointer;opacity:0}
pre:hover .copy,pre:focus .copy,.copy:focus-visible{opacity:1}
aside{grid-area:toc;position:sticky;top:60px;align-self:start;max-height:calc(100vh - 60px);overflow:auto;padding:12px 24px 24px 0}
aside a{display:block;padding:3px 0;font-size:14px;color:var(--quiet);text-decoration:none}
aside a:hover{color:var(--link)}
.near{display:flex;justify-content:space-between;gap:16px;margin-top:56px;border-top:1px solid var(--line);padding-top:16px}
.near a{text-decoration:none}
.near [rel=next]{text-align:right;margin-left:auto}
.near small{display:block;color:var(--quiet)}
.skip{position:absolute;left:-999px}
.skip:focus{left:8px;top:8px;z-index:3;background:var(--bg);padding:8px}
.hljs-comment{color:var(--quiet)}
.hljs-keyword,.hljs-built_in,.hljs-tag .hljs-name{color:var(--violet)}
.hljs-string,.hljs-regexp{color:var(--green)}
.hljs-number,.hljs-literal,.hljs-variable{color:var(--amber)}
.hljs-attr,.hljs-title,.hljs-property{color:var(--link)}
@media(max-width:1180px){body{grid-template:auto 1fr/256px minmax(0,1fr);grid-template-areas:"head head" "pages main"}aside{display:none}}
@media(max-width:800px){
body{display:block}
header{padding:0 12px;gap:8px}
.brand{white-space:normal;line-height:1.1}
#menu{display:block}
#pages{position:static;height:auto;border:0;border-bottom:1px solid var(--line);padding:4px 24px 16px}
.scripted #pages:not(.open){display:none}
#pages a{padding:8px 12px}
#results{position:fixed;top:60px;left:8px;right:8px;width:auto}
h1{font-size:27px}
.copy{display:none}
}
@media print{header,#pages,aside,.near{display:none}body{display:block}}`
