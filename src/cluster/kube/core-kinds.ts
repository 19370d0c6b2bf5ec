/** Kinds that each cluster has, which are requested without asking the server for its kinds. */
import type { Resource } from './resources.ts';

export const CONFIG_MAPS: Resource = { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true };
export const EVENTS: Resource = { apiVersion: 'v1', kind: 'Event', plural: 'events', namespaced: true };
export const NAMESPACES: Resource = { apiVersion: 'v1', kind: 'Namespace', plural: 'namespaces', namespaced: false };
export const NODES: Resource = { apiVersion: 'v1', kind: 'Node', plural: 'nodes', namespaced: false };
export const PODS: Resource = { apiVersion: 'v1', kind: 'Pod', plural: 'pods', namespaced: true };
export const SECRETS: Resource = { apiVersion: 'v1', kind: 'Secret', plural: 'secrets', namespaced: true };

/** Labels of a Node that is a control plane; the second one before Kubernetes 1.24. */
export const CONTROL_PLANE_LABELS = [
  'node-role.kubernetes.io/control-plane',
  'node-role.kubernetes.io/master',
] as const;
