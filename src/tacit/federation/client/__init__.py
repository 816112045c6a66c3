"""The site's half: a policy, requests that wait for a person, and answers to a study."""
