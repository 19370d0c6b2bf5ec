/** Prose in plain American technical English: words that are not used, and what to write instead (CONTRIBUTING, Style). */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseSync } from 'oxc-parser';
import * as assert from '../support/assert.ts';
import { suite } from '../support/suite.ts';
import { tree } from '../support/tree.ts';

const test = suite('words of the prose');
const ROOT = join(import.meta.dirname, '../..');

/** Files and folders that are checked. */
const CHECKED = [
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'addons',
  'docs',
  'packages',
  'scripts',
  'src',
];
/** The tables of the two pages come from `src`, where they are checked. */
const SKIPPED = /(?:^|\/)node_modules\/|^docs\/(?:manifest|kurl-compatibility)\.md$/;

/** Words, as a regular expression without case, and what to write instead. A space also matches the end of a line. */
const WORDS: readonly (readonly [words: string, instead: string])[] = [
  ['told|tells', 'reported, printed, shows'],
  ['anew', 'again'],
  ['lacks?|lacking|lacked', 'is missing, does not have'],
  ['lies|lain|lie (?:in|below|beside|under|at)', 'is'],
  ['stands|stood', 'is, means'],
  ['beside', 'next to, with, in addition to'],
  ['(?:go|goes|going|gone|went) on', 'continue, resume'],
  ['there already|already there', 'already exists, existing'],
  ['nobody(?!:)|somebody|anybody', 'no one, or who it is'],
  ['for ever', 'forever'],
  ['put by', 'kept'],
  ['(?:held|holds?|holding) against|held to', 'checked against, compared with'],
  ['asked of', 'required from'],
  ['(?:come|comes|came|coming) along', 'is included'],
  ['is none of', 'is not'],
  ['given up', 'abandoned, aborted'],
  ['put right|puts right|mend(?:s|ed)?', 'fix'],
  ['by hand', 'manually'],
  ['shelf|shelves', 'cache'],
  ['bricks?', 'member, chunk'],
  ['lanes?', 'concurrency limit'],
  ['along packages?', 'companion package'],
  ['colou?rs?(?<=our|ours)', 'color'],
  ['behaviours?', 'behavior'],
  ['honour(?:s|ed)?', 'honor'],
  ['licences?', 'license'],
  ['fulfils?', 'fulfill'],
  ['recognis(?:e|es|ed)', 'recognize'],
];
/** All words at once; the name of the group that matches is the rule's place in the list. */
const RULES = new RegExp(
  String.raw`(?<![\w-])(?:${WORDS.map(([words], at) => `(?<w${at}>${words.replaceAll(' ', String.raw`[\s#*]+`)})`).join('|')})(?![\w-])`,
  'gi',
);

const blank = (text: string): string => text.replaceAll(/[^\n]+/g, (line) => ' '.repeat(line.length));
/** Code spans, targets of links, and HTML comments. */
const withoutCode = (text: string): string => text.replaceAll(/`[^`\n]+`|\]\([^)\n]*\)|<!--[^]*?-->/g, blank);

/** The text with everything blank that is not prose: same length, same lines. */
type Prose = (text: string) => string;

/** The text where `spans` says, and blanks elsewhere. */
function only(text: string, spans: readonly (readonly [start: number, end: number])[]): string {
  let [at, kept] = [0, ''];
  for (const [start, end] of spans.toSorted(([a], [b]) => a - b)) {
    kept += blank(text.slice(at, start)) + text.slice(start, end);
    at = end;
  }
  return kept + blank(text.slice(at));
}

/** Comments on lines of their own, and behind commands. A `#` in a string or here-document may count, too. */
const ofShell: Prose = (text) =>
  withoutCode(
    only(
      text,
      [...text.matchAll(/(?<=^|\s)#.*$/gm)].map(({ index, 0: all }) => [index, index + all.length]),
    ),
  );

/** Comments, strings and templates, without those that name modules. */
const ofTypeScript: Prose = (text) => {
  const { program, comments } = parseSync('a.ts', text);
  const literals: (readonly [number, number])[] = [];
  collectLiterals({ program }, literals);
  const noted = comments.map(({ start, end }) => [start, end] as const);
  let [at, plain] = [0, ''];
  for (const [start, end] of noted) {
    plain += text.slice(at, start) + withoutCode(text.slice(start, end));
    at = end;
  }
  return only(plain + text.slice(at), [...literals, ...noted]);
};

/** The spans of strings and of texts in templates below a node of the syntax tree. */
function collectLiterals(node: Record<string, unknown>, spans: (readonly [number, number])[]): void {
  const { type, value } = node;
  if (type === 'TemplateElement' || (type === 'Literal' && typeof value === 'string'))
    spans.push([Number(node['start']), Number(node['end'])]);
  for (const key in node) {
    const { [key]: below } = node;
    if (typeof below === 'object' && below !== null && key !== 'source')
      collectLiterals(below as Record<string, unknown>, spans);
  }
}

/** Markdown; of a change log the section Unreleased, since releases keep their text. */
const ofMarkdown: Prose = (text) => {
  const released = text.startsWith('# Changelog') ? text.search(/^## (?!Unreleased)/m) : -1;
  return withoutCode(released === -1 ? text : text.slice(0, released));
};

function proseOf(path: string, text: string): Prose | undefined {
  if (path.endsWith('.md')) return ofMarkdown;
  if (path.endsWith('.ts')) return ofTypeScript;
  const shell = /\.(?:sh|bash)$/.test(path) || /^(?:#!.*\b(?:ba)?sh\b|# shellcheck shell=)/.test(text);
  return shell ? ofShell : undefined;
}

/** Pages that are read as prose: their sentences are checked, too. A change log is a list of facts for whoever upgrades. */
const PAGES = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'addons', 'docs', 'packages'];
const MOST_WORDS = 35;
/** Turns of sentences, without code, and what to write instead. Each code span is the one word `X`. */
const TURNS: readonly (readonly [turn: RegExp, instead: string])[] = [
  [/\bof (?:its|their|your|our) own(?=\W*$|[*_]*[,.;:)])/, 'its own X, a separate X'],
  [/,[*_]* so that\b/, 'for a result: ", so"; for a purpose: "so that" without the comma'],
  [/^[*_]*(?:Refused|Denied|Rejected|Left out|Not noticed)\b.*\b(?:is|are)\b/, 'who refuses it, or a list'],
  [/(?:[^;]*;){4}/, 'a list'],
];

/** The sentences of a page with their lines; an item of a list or a cell of a table ends one, as a colon does. */
function sentencesOf(text: string): readonly { readonly line: number; readonly sentence: string }[] {
  const prose = text
    .replaceAll(/^ *```.*?^ *```|<!--.*?-->/gms, blank)
    .replaceAll(/\]\([^)]*\)/g, blank)
    .replaceAll(/`[^`]+`/g, (code) => `${code.slice(1).replaceAll(/[^\n]/g, ' ')}X`);
  const blocks = prose.matchAll(/(?:^(?!#|[ \t]*$).+\n?(?:(?! *(?:[-|#]|\d+\. )|[ \t]*$).+\n?)*)/gm);
  return [...blocks].flatMap(({ index, 0: block }) => {
    const cells = block.matchAll(block.startsWith('|') ? /[^|]+/g : /[^]+/g);
    return [...cells].flatMap(({ index: at, 0: cell }) =>
      [...cell.matchAll(/\S.*?(?:[.:?!]["')*_]*(?=\s)|$(?![^]))/gs)].map(({ index: start, 0: sentence }) => ({
        line: text.slice(0, index + at + start).split('\n').length,
        sentence: sentence.trim().replaceAll(/\s+/g, ' '),
      })),
    );
  });
}

/** One line for each sentence that is too long or has a turn that is not used. */
function sentenceFindings(path: string, text: string): readonly string[] {
  return sentencesOf(text).flatMap(({ line, sentence }) => {
    const words = sentence.split(' ').length;
    const found = TURNS.filter(([turn]) => turn.test(sentence)).map(([turn, instead]) => {
      return `${path}:${line}: "${turn.exec(sentence)?.[0].slice(0, 40)}": write ${instead}`;
    });
    if (words <= MOST_WORDS) return found;
    return [
      ...found,
      `${path}:${line}: "${sentence.slice(0, 40)}…" has ${words} words: write two sentences, or a list`,
    ];
  });
}

/** A comment has a subject: `Digest of the file`, not `Of the file`. */
const BARE = /^(?:Of|Those|These|In|As|One that|That of)\b/;
/** The same words where a comment may begin: a text without them needs no parser. */
const MAYBE_BARE = new RegExp(String.raw`\/[/*][*\s]*${BARE.source.slice(1)}`);

/** One line for each comment in TypeScript that begins without a subject. */
function bareComments(path: string, text: string): readonly string[] {
  if (!MAYBE_BARE.test(text)) return [];
  let last = -1;
  return parseSync('a.ts', text).comments.flatMap(({ type, value, start, end }) => {
    const isContinued = type === 'Line' && last !== -1 && /^\n[ \t]*$/.test(text.slice(last, start));
    last = type === 'Line' ? end : -1;
    const [word] = BARE.exec(value.replace(/^[*\s]+/, '')) ?? [];
    if (word === undefined || isContinued) return [];
    return [`${path}:${text.slice(0, start).split('\n').length}: "${word}": begin with a subject`];
  });
}

/** One line for each word that is not used: place, word, what to write. */
function findings(path: string, text: string): readonly string[] {
  const prose = proseOf(path, text)?.(text) ?? '';
  return [...prose.matchAll(RULES)].map(({ index, 0: word, groups = {} }) => {
    const instead = WORDS.find((_, at) => groups[`w${at}`] !== undefined)?.[1];
    return `${path}:${text.slice(0, index).split('\n').length}: "${word.replace(/\s[\s#*]*/, ' ')}": write ${instead}`;
  });
}

async function check(root: string, paths: readonly string[], find = findings): Promise<readonly string[]> {
  const found: string[] = [];
  for (const path of paths) {
    const below = await readdir(join(root, path), { recursive: true, withFileTypes: true }).catch(() => undefined);
    const files = below?.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name)) ?? [
      join(root, path),
    ];
    for (const file of files.toSorted()) {
      const name = file.slice(root.length + 1);
      if (!SKIPPED.test(name)) found.push(...find(name, await readFile(file, 'utf8')));
    }
  }
  return found;
}

test('pages, comments and messages use the words of the field', async () => {
  assert.equal(await check(ROOT, CHECKED), []);
});

test('sentences of pages are short, and say who does what', async () => {
  const pages: typeof findings = (path, text) => (path.endsWith('.md') ? sentenceFindings(path, text) : []);
  assert.equal(await check(ROOT, PAGES, pages), []);
});

test('a sentence is found by its first line: too long, or with a turn that is not used', () => {
  const long = Array.from({ length: 35 }, () => '`a b`').join('\n');
  const text = [
    `# Title of its own\n\n${long}. ${long} end.\n`,
    '```sh\nit has a file of its own\n```\n',
    '- Has a folder\n  of its own\n- Its own folder, so\n  that it stays. Use it so that it stays of its own will.\n',
    '| a | Refused, until you fix them, are: a; b |\n\na; b; c; d; e.\n',
    `| ${'word '.repeat(30)}| ${'word '.repeat(30)}|\n`,
  ].join('\n');
  assert.equal(sentenceFindings('a.md', text), [
    'a.md:37: "X X X X X X X X X X X X X X X X X X X X …" has 36 words: write two sentences, or a list',
    'a.md:77: "of its own": write its own X, a separate X',
    'a.md:79: ", so that": write for a result: ", so"; for a purpose: "so that" without the comma',
    'a.md:82: "Refused, until you fix them, are": write who refuses it, or a list',
    'a.md:84: "a; b; c; d;": write a list',
  ]);
});

test('each comment in the code begins with a subject', async () => {
  const code: typeof findings = (path, text) => (path.endsWith('.ts') ? bareComments(path, text) : []);
  assert.equal(await check(ROOT, ['scripts', 'src', 'test'], code), []);
});

test('a comment without a subject is found where it begins, and the next line of a comment may begin with any word', () => {
  const text =
    '/** Of it. */\n// Text goes\n// In lines.\nlet a; // As it is\n/**\n * One that is.\n */\n/** One of two. */\n';
  assert.equal(bareComments('a.ts', text), [
    'a.ts:1: "Of": begin with a subject',
    'a.ts:4: "As": begin with a subject',
    'a.ts:5: "One that": begin with a subject',
  ]);
});

test('each kind of file is checked in its prose only, by file and line', async () => {
  await using box = await tree({
    'docs/a.md': 'Fine.\n\nWhat lies here, `curlew lies`, [goes](lies/beside.md) and goes\non.\n',
    'docs/manifest.md': 'It lies.\n',
    'CHANGELOG.md': '# Changelog\n\n## Unreleased\n\n- anew\n\n## 1.0.0\n\n- beside\n',
    'lib/run': '#!/usr/bin/env bash\nlies=1 # nobody reads it\n',
    'lib/data.json': '{"a": "beside"}\n',
    'lib/a.ts': "import { lies } from './beside.ts';\n/** Told. */\nlies(`${'anew'} it\nstands`, /told/); // `told`\n",
  });
  assert.equal(await check(box.path, ['docs', 'CHANGELOG.md', 'lib']), [
    'docs/a.md:3: "lies": write is',
    'docs/a.md:3: "goes on": write continue, resume',
    'CHANGELOG.md:5: "anew": write again',
    'lib/a.ts:2: "Told": write reported, printed, shows',
    'lib/a.ts:3: "anew": write again',
    'lib/a.ts:4: "stands": write is, means',
    'lib/run:2: "nobody": write no one, or who it is',
  ]);
});

test.run();
