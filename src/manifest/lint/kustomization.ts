/** Paths in a kustomization that lead to no file of the add-on. Pure. */
import { posix } from 'node:path';
import { isMap, isScalar, isSeq, type YAMLMap } from 'yaml';
import { quoted } from '../rules.ts';
import type { Remark, Spot } from './spot.ts';
import { textUnder } from './yaml-images.ts';
import { eachDocument, type YamlDocument } from './yaml-text.ts';

const KUSTOMIZATION = /(?:^|\/)kustomization\.ya?ml$/;
/** Lists of paths. An item of some may also be a YAML text. */
const PATHS = ['resources', 'bases', 'components', 'crds', 'patchesStrategicMerge'];
/** Lists of maps with a path. */
const PATCHES = ['patches', 'patchesJson6902'];
/** `https://…`, `git@host:…`, `host.example/…`, `…?ref=main`, and what a template or a shell fills in: `${…}` was replaced by a run of x. */
const NOT_LOCAL = /[:?\n$]|__|xxxx|^[^./][^/]*\.[a-z]+\//;

export interface AddonTexts {
  /** Paths of the add-on's files, relative to its folder. */
  readonly files: readonly string[];
  /** The Manifest and the scripts: what they name may be written while a hook runs. */
  readonly scripts: () => string;
}

/** Nothing for files that are no kustomization. `path` is relative to the add-on's folder. */
export function missingPaths(path: string, text: () => string, { files, scripts }: AddonTexts): readonly Remark[] {
  if (!KUSTOMIZATION.test(path)) return [];
  const paths: (Spot & { readonly text: string })[] = [];
  // Its syntax is checked with that of all files.
  const addRemark = (): void => undefined;
  eachDocument(text(), addRemark, (document) => void paths.push(...pathsIn(document)), { all: true });
  const isThere = (named: string): boolean => {
    const target = posix.join(posix.dirname(path), named).replace(/\/$/, '');
    const name = posix.basename(target);
    // Outside of the add-on, or hooks copy the files of several folders into one.
    if (target === '.' || target.startsWith('..') || posix.isAbsolute(named)) return true;
    if (files.some((file) => file.startsWith(`${target}/`) || posix.basename(file) === name)) return true;
    return scripts().includes(name);
  };
  return paths
    .filter(({ text: named }) => named !== '' && !NOT_LOCAL.test(named) && !isThere(named))
    .map(({ text: named, from, to }) => ({
      code: 'kustomization/missing-file',
      from,
      to,
      message: `the add-on has no file ${quoted(named)}, and no script of it names one`,
      hint: 'add the file, or remove the line: kubectl apply -k fails without it',
    }));
}

function pathsIn({ tree, base }: YamlDocument): readonly (Spot & { readonly text: string })[] {
  if (!isMap(tree.contents)) return [];
  const map = tree.contents;
  const paths = PATHS.flatMap((key) => itemsOf(map, key)).map((item) => {
    return isScalar(item) && typeof item.value === 'string' && item.range
      ? { text: item.value, from: item.range[0], to: item.range[1] }
      : undefined;
  });
  const patches = PATCHES.flatMap((key) => itemsOf(map, key)).map((item) =>
    isMap(item) ? textUnder(item, 'path') : undefined,
  );
  return [...paths, ...patches]
    .filter((one) => one !== undefined)
    .map(({ text, from, to }) => ({ text, from: base + from, to: base + to }));
}

function itemsOf(map: YAMLMap, key: string): readonly unknown[] {
  const list = map.get(key);
  return isSeq(list) ? list.items : [];
}
