/** The settings that a new add-on takes: how many pods its Deployments have. Pure. */
import { variableName } from '../../spec/settings.ts';
import type { Replacements } from './fill.ts';
import type { Survey } from './survey.ts';
import { settingName, type Words } from './words.ts';

export interface ReplicaSetting {
  /** In an installer spec. */
  readonly setting: string;
  /** In install.sh. */
  readonly variable: string;
  readonly deployment: string;
  /** As the Deployment names it: a patch finds only what names the same. */
  readonly namespace: string | undefined;
  /** What its files are called: `webhook-replicas`. */
  readonly file: string;
}

/** An add-on with more is put together by hand anyway. */
const MOST = 8;

/** One setting for each Deployment; `replicas` where there is one Deployment only. */
export function replicaSettings(words: Words, { deployments }: Survey): readonly ReplicaSetting[] {
  if (deployments.length > MOST) return [];
  const found = new Map<string, ReplicaSetting>();
  for (const { name, namespace } of deployments) {
    const bare = name.startsWith(`${words.name}-`) ? name.slice(words.name.length + 1) : name;
    const setting = deployments.length === 1 ? 'replicas' : settingName(bare, 'Replicas');
    const variable = variableName(words.specName, setting);
    if (variable === undefined || found.has(variable)) continue;
    const file = deployments.length === 1 ? 'replicas' : `${bare}-replicas`;
    found.set(variable, { setting, variable, deployment: name, namespace, file });
  }
  return [...found.values()];
}

export function replicaWords({ setting, variable, deployment, namespace, file }: ReplicaSetting): Replacements {
  return {
    sampleReplicas: setting,
    SAMPLE_REPLICAS: variable,
    'sample-deployment': deployment,
    '\n  namespace: sample-deployment-namespace': namespace === undefined ? '' : `\n  namespace: ${namespace}`,
    'sample-replicas': file,
  };
}

/** The JSON Schema of all settings. */
export function settingsSchema(settings: readonly ReplicaSetting[]): string {
  const replicas = settings.map(({ setting, deployment }) => [
    setting,
    { type: 'integer', minimum: 0, maximum: 999, description: `pods of the Deployment ${deployment}` },
  ]);
  const schema = {
    type: 'object',
    properties: {
      version: { type: 'string', description: 'which version of the add-on' },
      s3Override: { type: 'string', description: 'address of another package in the place of its own' },
      ...Object.fromEntries(replicas),
    },
    required: ['version'],
    additionalProperties: false,
  };
  return `${JSON.stringify(schema, undefined, 2)}\n`;
}
