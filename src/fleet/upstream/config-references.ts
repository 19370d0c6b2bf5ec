/** References of Open Cluster Management to configurations -> the values of an add-on. Pure. */
import * as v from 'valibot';
import type { Findings } from '../../cluster/channel/findings.ts';
import { aText, fields, type Read } from '../../core/schema.ts';
import type { Path } from '../../formats/yaml/yaml.ts';
import { optionalText } from './kinds.ts';
import { mergeConfigs, type ConfigReference } from './placed.ts';
import type { TemplateValues } from './template-objects.ts';

const type = { group: optionalText, resource: aText };
export const TYPE_WITH_DEFAULT = fields({
  ...type,
  defaultConfig: v.exactOptional(fields({ namespace: optionalText, name: aText })),
});
export const REFERENCE = fields({ ...type, namespace: optionalText, name: aText });

/** The name by which `v1beta1` says that a type of `v1alpha1` has no default. */
export const NO_DEFAULT = '__reserved_no_default__';

/** `NAMESPACE/NAME` */
export function keyOf(one: { readonly namespace?: string | undefined; readonly name: string }): string {
  const { namespace = 'default', name } = one;
  return `${namespace}/${name}`;
}

/** A reference, and where it is. */
export interface Located {
  readonly reference: Read<typeof REFERENCE>;
  readonly path: Path;
}

export function referencesOf(written: readonly Located['reference'][]): readonly ConfigReference[] {
  return written.map(({ group = '', namespace = '', ...one }) => ({ ...one, group, namespace }));
}

/** The configurations of a folder: templates by name, others by `NAMESPACE/NAME`. */
export interface Configurations {
  readonly templates: ReadonlyMap<string, NonNullable<TemplateValues['templates']>[number]>;
  readonly configs: ReadonlyMap<string, NonNullable<TemplateValues['configs']>[number]>;
  /** Why what is there cannot be used, by kind and name. */
  readonly refused: ReadonlyMap<string, string>;
}

const TEMPLATES = 'addon.open-cluster-management.io/addontemplates';
const CONFIGS = 'addon.open-cluster-management.io/addondeploymentconfigs';
/** The types that an add-on of templates is made from. */
export const CONFIG_TYPES = [CONFIGS, TEMPLATES].map((title) => {
  const [group = '', resource = ''] = title.split('/');
  return { group, resource };
});

export function isTemplate({ group = '', resource }: Located['reference']): boolean {
  return `${group}/${resource}` === TEMPLATES;
}

/** One layer: all its configurations of a type replace those of the layers before. `supported` is empty if all types are. */
export function layerOf(
  located: readonly Located[],
  { templates, configs, refused }: Configurations,
  {
    supported,
    findings,
  }: { readonly supported: readonly Read<typeof TYPE_WITH_DEFAULT>[]; readonly findings: Findings },
): TemplateValues {
  for (const { reference, path } of located) {
    const { group = '', resource, namespace = '', name } = reference;
    const title = `${group}/${resource}`;
    const isSupported = supported.some((one) => one.resource === resource && (one.group ?? '') === group);
    const known = new Map([
      [TEMPLATES, { kind: 'AddOnTemplate', isThere: templates.has(name) }],
      [CONFIGS, { kind: 'AddOnDeploymentConfig', isThere: configs.has(`${namespace}/${name}`) }],
    ]).get(title);
    if (supported.length > 0 && !isSupported) {
      findings.error(
        'config',
        path,
        `supportedConfigs of the add-on have no ${title}`,
        'remove it, or add its type there',
      );
    } else if (known === undefined) {
      findings.ignored(path, title, 'only a program of the add-on reads it');
    } else if (!known.isThere) {
      const title = `${known.kind} ${namespace === '' ? name : `${namespace}/${name}`}`;
      const why = refused.get(title);
      if (why !== undefined) findings.error('config', path, `${title} cannot be used: ${why}`, 'correct it');
      else findings.error('config', path, `there is no ${title}`, 'add its file to the folder');
    }
  }
  const references = referencesOf(located.map(({ reference }) => reference));
  const { [TEMPLATES]: named, [CONFIGS]: others } = mergeConfigs([references]);
  return {
    ...(named && { templates: named.flatMap((key) => templates.get(key.slice(key.indexOf('/') + 1)) ?? []) }),
    ...(others && { configs: others.flatMap((key) => configs.get(key) ?? []) }),
  };
}
