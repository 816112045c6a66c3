(** Groups that move as far as the bound of averaging says. *)

Require Import Reals Lra Psatz List Arith Lia.
From Tacit Require Import Sums Formulas Model Optimum Blocks Tables Contributions Groups Averaging.
Import ListNotations.
Local Open Scope R_scope.

Section Attained.
Variables (d : nat) (X Y : R) (k : nat) (p : weights reals).
Hypothesis radius : 0 < X.
Hypothesis bound : 0 < Y.
Hypothesis several : (2 <= k)%nat.
Hypothesis some : (1 <= d)%nat.

(** Multiples of one row at the bounds. *)
Definition multiple (t : R) : row := {| x := fun i => match i with 0%nat => t * X | _ => 0 end; y :=
  t * Y |}.
Definition multiples (groups : list (list R)) : list (list row) := map (map multiple) groups.
Definition weight (groups : list (list R)) : R :=
  total (fun g => Rsqr (total (fun t => t) g)) groups / INR k.

Lemma multiple_legal t : Rabs t <= 1 -> legal d X Y (multiple t).
Proof.
  intros unit. split.
  - apply norm_le; [lra |]. unfold dot. rewrite (below_single d 0);
      [| lia | intros [| i] other; [lia | cbn; ring]]. cbn.
    assert (t * t <= 1) by (revert unit; unfold Rabs; destruct Rcase_abs; intros; nra).
    replace (t * X * (t * X)) with (t * t * (X * X)) by ring. assert (0 < X * X) by nra. nra.
  - cbn. rewrite Rabs_mult, (Rabs_right Y) by lra. pose proof (Rabs_pos t). nra.
Qed.

Lemma product_of_multiples (h : row -> R) (c : R) groups :
  (forall t (r : row), (forall i, x r i = t * x (multiple 1) i) -> y r = t * y (multiple 1) ->
    h r = Rsqr t * c) ->
  total h (averaged k (multiples groups)) = weight groups * c.
Proof.
  intros quadratic. assert (0 < INR k) by (apply lt_0_INR; lia). unfold averaged, multiples, weight.
  rewrite !total_map. unfold Rdiv. rewrite <- !total_scale_r. apply total_ext. intros g _.
  rewrite (quadratic (/ sqrt (INR k) * total (fun t => t) g)).
  - rewrite Rsqr_mult. replace (Rsqr (/ sqrt (INR k))) with (/ INR k); [ring |].
    unfold Rsqr. rewrite <- Rinv_mult by (apply Rgt_not_eq; now apply sqrt_lt_R0).
    now rewrite sqrt_sqrt by lra.
  - intros i. unfold shrunk, joined. cbn [x y]. rewrite total_map. destruct i as [| i].
    + unfold multiple. cbn [x]. rewrite total_scale_r. ring.
    + unfold multiple. cbn [x]. rewrite total_zero. ring.
  - unfold shrunk, joined. cbn [x y]. rewrite total_map. unfold multiple. cbn [y].
    rewrite total_scale_r. ring.
Qed.

Lemma multiples_apart G G' n n' :
  e p = 0 ->
  change_squared d p (of_groups k (multiples G) n 0) (of_groups k (multiples G') n' 0)
  = Rsqr (weight G
    - weight G') * (Rsqr (X * X) * longest reals (w p * Y / X) (v p * (Y * Y) / (X * X)))
        + Rsqr (c p) * Rsqr (n - n').
Proof.
  intros quiet. unfold change_squared, of_groups, sums. cbn [xtx xty yty count eigenvalue].
  set (one := multiple 1).
  assert (forall i j, total (fun r => x r i * x r j) (averaged k (multiples G))
    - total (fun r => x r i * x r j) (averaged k (multiples G'))
          = (weight G - weight G') * (x one i * x one j)) as grams.
  { intros i j. rewrite !(product_of_multiples _ (x one i * x one j)); [ring | |];
      (intros t r same _; rewrite !same; unfold Rsqr, one; ring). }
  assert (forall i, total (fun r => y r * x r i) (averaged k (multiples G))
    - total (fun r => y r * x r i) (averaged k (multiples G'))
          = (weight G - weight G') * (y one * x one i)) as crosses.
  { intros i. rewrite !(product_of_multiples _ (y one * x one i)); [ring | |];
      (intros t r same also; rewrite same, also; unfold Rsqr, one; ring). }
  rewrite !(product_of_multiples (fun r => y r * y r) (y one * y one))
    by (intros t r _ also; rewrite also; unfold Rsqr, one; ring).
  rewrite (below_single d 0); [| lia |].
  2: { intros [| i] other;
         [lia |]. unfold below. rewrite <- (total_zero (seq 0 d)). apply total_ext. intros j _.
       rewrite grams. cbn. unfold Rsqr. ring. }
  rewrite (below_single d 0);
    [| lia | intros [| j] other; [lia |]; rewrite grams; cbn; unfold Rsqr; ring].
  rewrite (below_single d 0);
    [| lia | intros [| j] other; [lia |]; rewrite crosses; cbn; unfold Rsqr; ring].
  rewrite grams, crosses, quiet. unfold longest, one, multiple, Rsqr. cbn. field. lra.
Qed.

Lemma total_repeat t n : total (fun t => t) (repeat t n) = INR n * t.
Proof.
  induction n as [| n IH]; [cbn; lra |]. cbn [repeat]. rewrite total_cons, IH, S_INR. lra.
Qed.

Lemma averaged_attained rel :
  e p = 0 ->
  exists o o' G G', (forall r, In r o \/ In r o' -> legal d X Y r) /\ coupled rel o o' /\
    dealt k o G /\ dealt k o' G' /\
    change d p (of_groups k G (INR (length o)) 0) (of_groups k G' (INR (length o')) 0)
    = sqrt (sensitivity_squared reals rel (INR k) X Y p).
Proof.
  intros quiet. destruct k as [| m] eqn:shape; [lia |]. rewrite <- shape in *.
  assert (INR k = INR m + 1) as size by (rewrite shape; apply S_INR).
  assert (1 <= INR m) as others. { replace 1 with (INR 1) by reflexivity. apply le_INR. lia. }
  assert (Rabs 1 <= 1 /\ Rabs (-1) <= 1) as [small small']
    by (unfold Rabs; repeat destruct Rcase_abs; lra).
  assert (forall t n, Rabs t <= 1 -> forall r, In r (map multiple (repeat t n)) -> legal d X Y r)
    as lawful.
  { intros t n unit r member. apply in_map_iff in member
      as (u & <- & inside). apply repeat_spec in inside as ->. now apply multiple_legal. }
  assert (forall t, map multiple (repeat t m) ++ [multiple t] = map multiple (repeat t k))
    as one_more.
  { intros t. rewrite shape. change [multiple t]
      with (map multiple [t]). rewrite <- map_app. f_equal.
    rewrite <- repeat_cons. reflexivity. }
  assert (forall rel, sensitivity_squared reals rel (INR k) X Y p
          = Rsqr (lever reals rel (INR k)) *
            (Rsqr (X * X) * longest reals (w p * Y / X) (v p * (Y * Y) / (X * X)))
            + Rsqr (c p) * match rel with ReplaceOne => 0 | AddRemove => 1 end :> R) as formula.
  { intros r. unfold sensitivity_squared,
      rows_squared. cbn [at_most whole reals]. destruct (Rle_dec (INR k) 1) as [never | _]; [lra |].
    destruct r; unfold square; cbn [plus times over whole reals]; rewrite quiet; unfold Rsqr; ring.
    }
  assert (forall rel, lever reals rel (INR k) = match rel with ReplaceOne => 4 * INR m / INR k
    | AddRemove => (6 * INR m + 1) / INR k end :> R) as leverage.
  { intros r. unfold lever. cbn [at_most whole reals]. destruct (Rle_dec (INR k) 1)
      as [never | _]; [lra |].
    destruct r; cbn [plus minus times over whole reals]; rewrite size; f_equal; ring. }
  pose (mixed := repeat 1 m ++ [-1]).
  assert (map multiple mixed = map multiple (repeat 1 m) ++ [multiple (-1)]) as mixture
    by apply map_app.
  assert (length mixed = k) as full by (unfold mixed; rewrite app_length, repeat_length; cbn; lia).
  assert (total (fun t => t) mixed = INR m - 1) as less
    by (unfold mixed; rewrite total_app, total_repeat; cbn; ring).
  destruct rel.
  - exists (map multiple (repeat 1 m) ++ multiple 1 :: []),
      (map multiple (repeat 1 m) ++ multiple (-1) :: []).
    exists (multiples [repeat 1 k]), (multiples [mixed]). split; [| split; [| split; [| split]]].
    + intros r. rewrite !in_app_iff. intros [[member | [<- | []]] | [member | [<- | []]]];
        eauto using multiple_legal.
    + constructor.
    + rewrite one_more. apply dealt_last. rewrite map_length, repeat_length. lia.
    + rewrite <- mixture. apply dealt_last. rewrite map_length, full. lia.
    + unfold change. f_equal. rewrite multiples_apart by exact quiet. rewrite formula, leverage.
      unfold weight.
      cbn [total fold_right]. rewrite less, total_repeat, !app_length. cbn [length].
      f_equal; [f_equal; f_equal | unfold Rsqr; ring].
      rewrite size. unfold Rsqr. field. lra.
  - exists (map multiple (repeat 1 m) ++ multiple 1 :: map multiple (repeat (-1) m) ++
      [multiple (-1)]).
    exists (map multiple (repeat 1 m) ++ multiple (-1) :: map multiple (repeat (-1) m)).
    exists (multiples [repeat 1 k; repeat (-1) k]), (multiples [mixed; repeat (-1) m]).
    split; [| split; [| split; [| split]]].
    + intros r. rewrite !in_app_iff. cbn [In]. rewrite !in_app_iff.
      intros [[member | [<- | [member | [<- | []]]]] | [member | [<- | member]]];
        eauto using multiple_legal.
    + constructor.
    + rewrite one_more.
      change (multiple 1 :: map multiple (repeat (-1) k))
        with ([multiple 1] ++ map multiple (repeat (-1) k)).
      rewrite app_assoc, one_more. apply dealt_full; [rewrite map_length, repeat_length; lia |].
      apply dealt_last. rewrite map_length, repeat_length. lia.
    + change (multiple (-1) :: map multiple (repeat (-1) m))
        with ([multiple (-1)] ++ map multiple (repeat (-1) m)).
      rewrite app_assoc, <- mixture. apply dealt_full; [now rewrite map_length |].
      apply dealt_last. rewrite map_length, repeat_length. lia.
    + unfold change. f_equal. rewrite multiples_apart by exact quiet. rewrite formula, leverage.
      unfold weight.
      cbn [total fold_right]. rewrite less, !total_repeat. f_equal; [f_equal; f_equal |].
      * rewrite size. unfold Rsqr. field. lra.
      * f_equal. rewrite !app_length. cbn [length].
        rewrite !app_length, !map_length, !repeat_length. cbn [length].
        rewrite !plus_INR, !S_INR, !plus_INR. cbn. unfold Rsqr. ring.
Qed.
End Attained.
