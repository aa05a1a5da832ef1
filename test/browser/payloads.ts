/** Text that tries to run a script or contact another host, as a model, command or user might write it. */
const seeds = [
  "<script>window.pwned = 1</script>",
  "<img src=x onerror=window.pwned=1>",
  "<svg onload=window.pwned=1>",
  "<iframe src=javascript:window.parent.pwned=1></iframe>",
  "<a href=javascript:window.pwned=1>here</a>",
  "<body onload=window.pwned=1>",
  "<details open ontoggle=window.pwned=1>",
  "<style>@import 'http://outside.example/style.css'</style>",
  "<link rel=stylesheet href=http://outside.example/style.css>",
  "<meta http-equiv=refresh content='0;url=http://outside.example/'>",
  "<object data=http://outside.example/o></object>",
  "<embed src=http://outside.example/e>",
  "<form action=http://outside.example/f><button autofocus>send</button></form>",
  "<base href=http://outside.example/>",
  "<math><mtext><script>window.pwned=1</script></mtext></math>",
  "![picture](http://outside.example/pixel.png)",
  "![picture](javascript:window.pwned=1)",
  "[link](javascript:window.pwned=1)",
  "[link](data:text/html,<script>window.pwned=1</script>)",
  "[link](vbscript:window.pwned=1)",
  "<http://outside.example/auto>",
  "\u001B]8;;javascript:window.pwned=1\u0007link\u001B]8;;\u0007",
  "\u001B[31m<script>window.pwned=1</script>\u001B[0m",
  "\u001B]0;title\u0007\u001B[2J\u001B[H",
  "{{constructor.constructor('window.pwned=1')()}}",
  "${window.pwned=1}",
  "javascript:window.pwned=1",
  "'\"><img src=http://outside.example/q onerror=window.pwned=1>",
  "\u202Egpj.exe",
  "--><script>window.pwned=1</script><!--",
];

const wrappings: ((text: string) => string)[] = [
  (text) => text,
  (text) => `"${text}`,
  (text) => `</textarea>${text}`,
  (text) => `</title>${text}`,
  (text) => `# ${text}`,
  (text) => `- ${text}`,
  (text) => `> ${text}`,
  (text) => `| a |\n|---|\n| ${text} |`,
  (text) => `\`\`\`html\n${text}\n\`\`\``,
  (text) => text.replaceAll("<", "&lt;"),
];

/** 300 payloads. */
export const payloads: readonly string[] = wrappings.flatMap((wrap) => seeds.map(wrap));
