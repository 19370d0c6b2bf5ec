/** The configuration file: options that a site sets once. */
import * as v from 'valibot';
import { readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Context } from '../../core/context.ts';
import { CurlewError, asError, errnoOf, fileError } from '../../core/errors.ts';
import { parseText, shallowJson } from '../../core/json.ts';
import { type Read, byKey, closed, convert, textList } from '../../core/schema.ts';
import { formatImageRef, parseImageRef } from '../../core/image-ref.ts';
import { OS_IDS, type OsId, osRow } from '../../core/os.ts';
import { parseMirror } from '../../build/registry/endpoint.ts';
import { isWebAddress } from '../../ship/store/web.ts';

export type Config = Read<ReturnType<typeof configSchema>>;

/** HOME, or `/` if it is unset. One that is empty or relative would be the current folder, whose files may be of others. */
export function homeFolder(env: Context['env']): string {
  const home = env['HOME'] ?? '/';
  return home.startsWith('/') ? home : '/';
}

/** The folder of the user's settings or data, by the XDG base directory specification. */
export function xdgFolder(env: Context['env'], variable: string, fallback: string): string {
  const set = env[variable];
  return set !== undefined && set.startsWith('/') ? set : join(homeFolder(env), fallback);
}

/** The folder of what can be made again. */
export function cacheFolder(env: Context['env']): string {
  return join(xdgFolder(env, 'XDG_CACHE_HOME', '.cache'), 'curlew');
}

/** Reads the named file, or the user's own if it exists. An unknown key is an error: it would have no effect. */
export async function readConfig(
  path: string | undefined,
  { env, cwd }: Pick<Context, 'env' | 'cwd'>,
): Promise<Config> {
  const own = join(xdgFolder(env, 'XDG_CONFIG_HOME', '.config'), 'curlew', 'config.json');
  const file = path === undefined ? own : resolve(cwd, path);
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    if (path === undefined && errnoOf(error) === 'ENOENT') return parseConfig('{}', file);
    throw fileError(`read the configuration ${file}`, error);
  }
  return parseConfig(text, file);
}

function parseConfig(text: string, file: string): Config {
  const bad = (what: string, hint = 'curlew help configuration describes each key'): CurlewError =>
    new CurlewError('USAGE', `configuration ${file}: ${what}`, { hint });
  // The parser's message would quote the text, which may contain secrets in addresses of mirrors.
  const json = parseText(text, shallowJson, (what) => bad(what, `jq . ${file} shows where`));
  const read = convert(configSchema(dirname(file)), json);
  if ('value' in read) return read.value;
  throw bad(read.problems[0].message, read.problems[0].hint);
}

const ID = /^[a-z0-9][a-z0-9-]{0,63}$/;
const URL_FORM = /^(?:https?|file):\/\/[^\s]+$/;

const text = v.exactOptional(v.string());
const list = v.optional(textList, []);
const words = v.exactOptional(v.array(v.pipe(v.string(), v.regex(/^[^\s]+$/, 'not a word'))));
const common = {
  id: v.pipe(v.string(), v.regex(ID, 'not a name of a-z, 0-9 and "-"')),
  url: v.pipe(v.string(), v.regex(URL_FORM, 'not an https, http or file URL')),
  key: v.exactOptional(v.pipe(v.string(), v.regex(/^[^\r\n]*$/, 'contains a line break'))),
};
const onlyApt = v.exactOptional(v.custom<never>(() => false, 'for apt only'));
const onlyRpm = v.exactOptional(v.custom<never>(() => false, 'for rpm only'));
const rpm = closed({ ...common, form: v.exactOptional(v.literal('mirrorlist')), suites: onlyApt, components: onlyApt });
const apt = v.pipe(
  closed({ ...common, suites: words, components: words, form: onlyRpm }),
  v.check(({ suites }) => suites !== undefined, 'suites are missing\nwrite ["jammy"], or ["./"] for a flat repository'),
);

const mirrors = v.pipe(
  byKey(v.union([v.string(), textList], 'not a list of hosts')),
  v.rawTransform(({ dataset, addIssue, NEVER }) =>
    Object.entries(dataset.value).flatMap(([host, addresses]) =>
      [addresses].flat().map((address) => {
        try {
          return parseMirror(`${host}=${address}`);
        } catch (error) {
          addIssue({ message: asError(error).message });
          return NEVER;
        }
      }),
    ),
  ),
);

const image = v.pipe(
  v.string(),
  v.rawTransform(({ dataset, addIssue, NEVER }) => {
    const ref = parseImageRef(dataset.value);
    if (typeof ref !== 'string') return formatImageRef(ref);
    addIssue({ message: ref });
    return NEVER;
  }),
);

type ByOs<Value> = Partial<Record<OsId, Value>>;

/** An object by operating system. */
function byOs<Schema extends v.GenericSchema>(schemaOf: (os: OsId) => Schema) {
  const entries = Object.fromEntries(OS_IDS.map((os) => [os, v.exactOptional(schemaOf(os))]));
  const schema: v.GenericSchema<ByOs<v.InferInput<Schema>>, ByOs<v.InferOutput<Schema>>> = closed(
    entries,
    'operating system',
  );
  return v.optional(schema, {});
}

/** The schema of a file in this folder, which paths in it are relative to. */
function configSchema(folder: string) {
  const path = v.pipe(
    v.string(),
    v.transform((name) => resolve(folder, name)),
  );
  const place = v.pipe(
    v.string(),
    v.transform((name) => (isWebAddress(name) ? name : resolve(folder, name))),
  );
  const programs = v.pipe(
    byKey(v.string()),
    v.transform((paths) => Object.entries(paths).map(([name, file]) => [name, resolve(folder, file)] as const)),
  );
  return closed({
    /** Registry hosts with the mirrors that are tried before them, in order. */
    registryMirrors: v.optional(mirrors, {}),
    /** Hosts that may be contacted over plain http. */
    allowHttp: list,
    /** Hosts that may be sent credentials as the realm of another registry. */
    trustRealms: list,
    /** Images that are accepted without a platform. */
    anyPlatform: list,
    caFile: v.exactOptional(path),
    /** Builder images that replace those of the operating systems. */
    builders: byOs(() => image),
    /** Package repositories that replace those of the operating systems, for the host backend. */
    repositories: byOs((os) => v.pipe(v.array(osRow(os).family === 'debian' ? apt : rpm), v.nonEmpty('no repository'))),
    /** Options for stores in S3. */
    s3: v.optional(
      closed({ endpoint: text, region: text, profile: text, pathStyle: v.exactOptional(v.boolean()) }),
      {},
    ),
    /** The engine's network for containers; default: the engine's default. */
    containerNetwork: text,
    /** Public keys; bundles must be signed with one of them. */
    trustedKeys: v.optional(v.array(path), []),
    /** Folder, or address of a web server's, with the executables for nodes of this version's release. */
    executables: v.exactOptional(place),
    /** Programs that create machines, by the name that files of clusters have for them. */
    providers: v.optional(programs, {}),
    /** Registry hosts, including subdomains, that image overrides of a spec may name in addition to the public ones. */
    imageRegistries: v.optional(v.array(v.pipe(v.string(), v.toLowerCase())), []),
  });
}
