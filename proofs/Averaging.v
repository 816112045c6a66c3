(** Averaging: coupled orders of neighbouring tables, dealt into groups. *)

Require Import Reals Lra Psatz List Permutation Arith Lia.
From Tacit Require Import Sums Formulas Model Optimum Blocks Tables Contributions Groups.
Import ListNotations.
Local Open Scope R_scope.

(** * Dealing *)

Section Dealing.
Variable k : nat.
Hypothesis some : (1 <= k)%nat.

Lemma dealt_cases o G :
  dealt k o G ->
  (o = [] /\ G = []) \/ ((0 < length o <= k)%nat /\ G = [o])
  \/ exists g order groups, o = g ++ order /\ G = g :: groups /\ length g = k /\
    dealt k order groups.
Proof. intros []; [auto | auto | right; right; eauto 8]. Qed.

Lemma dealt_empty G : dealt k [] G -> G = [].
Proof.
  intros [[_ done] | [[small _] | (g & order & groups & joins & _ & full & _)]]%dealt_cases;
    [exact done | cbn in small; lia |].
  symmetry in joins. apply app_eq_nil in joins as [-> _]. cbn in full. lia.
Qed.

Lemma same_front (g g' order order' : list row) : length g = length g' ->
  g ++ order = g' ++ order' -> g = g' /\ order = order'.
Proof.
  revert g'. induction g as [| r g IH]; intros [| s g'] same joins; cbn in *; try discriminate;
    [auto |].
  injection joins as -> joins. injection same as same. destruct (IH g' same joins) as [-> ->]. auto.
Qed.

Lemma dealt_unique o G G' : dealt k o G -> dealt k o G' -> G = G'.
Proof.
  intros deal. revert G'. induction deal as [| g small | g order groups full rest IH];
    intros G' other.
  - symmetry. now apply dealt_empty.
  - apply dealt_cases in other as [[-> _] | [[_ ->] | (g' & order' & groups' & -> & ->
      & full' & rest')]]; [cbn in *; lia | reflexivity |].
    rewrite app_length in small. destruct order' as [| r order']; [| cbn in small; lia].
    apply dealt_empty in rest' as ->. now rewrite app_nil_r.
  - apply dealt_cases in other as [[joins _] | [[small' ->] | (g' & order' & groups' & joins & ->
      & full' & rest')]].
    + apply app_eq_nil in joins as [-> _]. cbn in full. lia.
    + rewrite app_length in small'. destruct order as [| r order]; [| cbn in small'; lia].
      apply dealt_empty in rest as ->. now rewrite app_nil_r.
    + apply same_front in joins as [-> ->]; [| lia]. f_equal. auto.
Qed.

Lemma dealt_exchange o G before r after :
  dealt k o G -> o = before ++ r :: after ->
  exists A B left right,
    G = A ++ (left ++ r :: right) :: B /\ (length (left ++ r :: right) <= k)%nat
    /\ (forall s, In s (left ++ right) -> In s (before ++ after))
    /\ (forall r', dealt k (before ++ r' :: after) (A ++ (left ++ r' :: right) :: B)).
Proof.
  intros deal. revert before. induction deal as [| g small | g order groups full rest IH];
    intros before shape.
  - now destruct before.
  - exists [], [], before, after. subst g. repeat split; [lia | auto |].
    intros r'. apply dealt_last. rewrite app_length in *. cbn in *. lia.
  - apply app_eq_app in shape as (middle & [[left right] | [left right]]).
    + destruct middle as [| r0 middle].
      * cbn in right. rewrite app_nil_r in left. subst before order.
        destruct (IH [] eq_refl) as (A & B & gl & gr & -> & fits & inside & again).
        exists (g :: A), B, gl, gr. repeat split; [exact fits | |].
        { intros s member. apply in_or_app. right. now apply inside. }
        { intros r'. cbn. apply dealt_full; [exact full | apply (again r')]. }
      * cbn in right. injection right as <- ->. exists [], groups, before, middle. subst g.
        repeat split; [lia | |].
        { intros s. rewrite !in_app_iff. tauto. }
        { intros r'. rewrite app_comm_cons, app_assoc. apply dealt_full;
            [| exact rest]. rewrite app_length in *. cbn in *. lia. }
    + subst before order.
      destruct (IH middle eq_refl) as (A & B & gl & gr & -> & fits & inside & again).
      exists (g :: A), B, gl, gr. repeat split; [exact fits | |].
      * intros s member. rewrite <- app_assoc. apply in_or_app. right. now apply inside.
      * intros r'. rewrite <- app_assoc. cbn. apply dealt_full; [exact full | apply (again r')].
Qed.

Lemma dealt_loss o G before r :
  dealt k o G -> o = before ++ [r] ->
  exists A g, G = A ++ [g ++ [r]] /\ (length (g ++ [r]) <= k)%nat /\ (forall s, In s g ->
    In s before)
    /\ (g = [] /\ dealt k before A \/ dealt k before (A ++ [g])).
Proof.
  intros deal. revert before. induction deal as [| g small | g order groups full rest IH];
    intros before shape.
  - now destruct before.
  - exists [], before. subst g. repeat split; [lia | auto |]. destruct before as [| s before];
      [left; split; [auto | constructor] |].
    right. apply dealt_last. rewrite app_length in small. cbn in *. lia.
  - destruct order as [| s order].
    + apply dealt_empty in rest as ->. rewrite app_nil_r in shape. exists [], before. subst g.
      repeat split; [lia | auto |].
      destruct before as [| s before]; [left; split; [auto | constructor] |].
      right. apply dealt_last. rewrite app_length in *. cbn in *. lia.
    + destruct (exists_last (l := s :: order)) as (front & last & back); [discriminate |].
      rewrite back in *.
      rewrite app_assoc in shape. apply app_inj_tail in shape as [<- <-].
      destruct (IH front eq_refl) as (A & g' & -> & fits & inside & again).
      exists (g :: A), g'. repeat split; [exact fits | |].
      * intros t member. apply in_or_app. right. now apply inside.
      * destruct again as [[-> again] | again]; [left | right]; [split; [reflexivity |] |]; cbn;
          now apply dealt_full.
Qed.

Lemma every_order_is_dealt o : exists G, dealt k o G.
Proof.
  remember (length o) as n eqn:size. revert o size. induction n as [n IH] using lt_wf_ind.
  intros o size.
  destruct (Nat.eq_dec n 0) as [none | more].
  - exists []. destruct o; [constructor | cbn in size; lia].
  - destruct (le_lt_dec n k) as [small | large]; [exists [o]; apply dealt_last; lia |].
    destruct (IH (length (skipn k o))) with (o := skipn k o) as [G deal];
      [rewrite skipn_length; lia | reflexivity |].
    exists (firstn k o :: G). rewrite <- (firstn_skipn k o) at 1. apply dealt_full; [| exact deal].
    apply firstn_length_le. lia.
Qed.
End Dealing.

(** * From one group to the statistics *)

Section Averages.
Variables (d : nat) (X Y : R) (k : nat).
Hypothesis radius : 0 < X.
Hypothesis bound : 0 < Y.
Hypothesis several : (2 <= k)%nat.

(** All three parts moved by no more than L times what a longest row has. *)
Definition moved (L : R) (s s' : statistics) : Prop :=
  frobenius d (fun i j => xtx s i j - xtx s' i j) <= Rsqr (L * (X * X))
  /\ norm d (fun i => xty s i - xty s' i) <= L * (X * Y)
  /\ Rabs (yty s - yty s') <= L * (Y * Y).

Lemma frobenius_is_size M :
  frobenius d M = total (fun ij => Rsqr (M (fst ij) (snd ij))) (list_prod (seq 0 d) (seq 0 d)).
Proof. unfold frobenius, below. now rewrite total_pairs. Qed.

Lemma moved_through L L' s s' s'' : 0 <= L -> 0 <= L' -> moved L s s' -> moved L' s' s'' ->
  moved (L + L') s s''.
Proof.
  intros nonneg nonneg' (one & two & three) (one' & two' & three').
  assert (0 < X * X /\ 0 < X * Y /\ 0 < Y * Y) as (? & ? & ?) by nra.
  assert (forall M N : nat -> nat -> R, forall B C, 0 <= B -> 0 <= C -> frobenius d M <= Rsqr B ->
    frobenius d N <= Rsqr C ->
          frobenius d (fun i j => M i j + N i j) <= Rsqr (B + C)) as add.
  { intros M N B C posB posC first second. rewrite frobenius_is_size in *. set (all :=
      list_prod (seq 0 d) (seq 0 d)) in *.
    apply (size_le all (fun ij => M (fst ij) (snd ij)) B posB) in first.
    apply (size_le all (fun ij => N (fst ij) (snd ij)) C posC) in second.
    apply (size_le all (fun ij => M (fst ij) (snd ij) + N (fst ij) (snd ij)) (B + C)); [lra |].
    pose proof (triangle all (fun ij => M (fst ij) (snd ij)) (fun ij => -1 * N (fst ij) (snd ij)))
      as both.
    rewrite (size_sign all (fun ij => N (fst ij) (snd ij)) (-1)) in both by (unfold Rsqr; lra).
    unfold apart in both.
    rewrite (size_ext all _ (fun ij => M (fst ij) (snd ij) + N (fst ij) (snd ij))) in both
      by (intros; ring). lra. }
  split; [| split].
  - rewrite Rmult_plus_distr_r.
    eapply Rle_trans; [apply Req_le | apply add; [| | exact one | exact one']];
      try (apply Rmult_le_pos; lra).
    apply below_ext. intros. apply below_ext. intros. f_equal. ring.
  - pose proof (triangle (seq 0 d) (fun i => xty s i
      - xty s' i) (fun i => -1 * (xty s' i - xty s'' i))) as both.
    rewrite (size_sign (seq 0 d) (fun i => xty s' i - xty s'' i) (-1)) in both
      by (unfold Rsqr; lra). unfold apart in both.
    rewrite (size_ext (seq 0 d) _ (fun i => xty s i - xty s'' i)) in both by (intros; ring).
    rewrite !size_is_norm in both. lra.
  - replace (yty s - yty s'') with ((yty s - yty s') + (yty s' - yty s'')) by ring.
    eapply Rle_trans; [apply Rabs_triang |]. lra.
Qed.

Lemma group_moves L A B g g' n n' l l' :
  within d X Y (INR k * L) (joined g) (joined g') ->
    moved L (of_groups k (A ++ g :: B) n l) (of_groups k (A ++ g' :: B) n' l').
Proof.
  intros (one & two & three). assert (0 < INR k) as pos by (apply lt_0_INR; lia).
  set (f := / sqrt (INR k)).
  assert (f * f = / INR k) as ff.
  { unfold f. rewrite <- Rinv_mult
      by (apply Rgt_not_eq; now apply sqrt_lt_R0). now rewrite sqrt_sqrt by lra. }
  assert (forall h : row ->
    R, total h (averaged k (A ++ g :: B)) - total h (averaged k (A ++ g' :: B))
          = h (shrunk f (joined g)) - h (shrunk f (joined g'))) as only.
  { intros h. unfold averaged. rewrite !map_app. cbn [map]. rewrite !total_app,
      !total_cons. fold f. ring. }
  split; [| split].
  - apply Rle_trans with (Rsqr (/ INR k) * outer d (x (joined g)) (x (joined g'))).
    + rewrite <- ff, <- outer_scaled. apply Req_le. apply below_ext. intros i _. apply below_ext.
      intros j _. f_equal.
      cbn [of_groups sums xtx]. rewrite only. reflexivity.
    + replace (Rsqr (L * (X * X))) with (Rsqr (/ INR k) * Rsqr (INR k * L * (X * X)))
        by (unfold Rsqr; field; lra).
      apply Rmult_le_compat_l; [apply Rle_0_sqr | exact one].
  - apply Rle_trans
      with (/ INR k * norm d (fun i => y (joined g) * x (joined g) i
        - y (joined g') * x (joined g') i)).
    + rewrite <- (Rabs_right (/ INR k)) at 1 by (left; now apply Rinv_0_lt_compat).
      rewrite <- norm_scale. apply Req_le.
      apply (size_ext (seq 0 d)). intros i. cbn [of_groups sums xty]. rewrite only, <- ff.
      cbn [shrunk x y]. ring.
    + replace (L * (X * Y)) with (/ INR k * (INR k * L * (X * Y))) by (field; lra).
      apply Rmult_le_compat_l; [left; now apply Rinv_0_lt_compat | exact two].
  - cbn [of_groups sums yty]. rewrite only. cbn [shrunk y].
    replace (f * y (joined g) * (f * y (joined g)) - f * y (joined g') * (f * y (joined g')))
      with (/ INR k * (Rsqr (y (joined g)) - Rsqr (y (joined g'))))
        by (rewrite <- ff; unfold Rsqr; ring).
    rewrite Rabs_mult, (Rabs_right (/ INR k)) by (left; now apply Rinv_0_lt_compat).
    replace (L * (Y * Y)) with (/ INR k * (INR k * L * (Y * Y))) by (field; lra).
    apply Rmult_le_compat_l; [left; now apply Rinv_0_lt_compat | exact three].
Qed.

Lemma empty_group_adds_nothing A n l h :
  (forall r, (forall i, x r i = 0) -> y r = 0 -> h r = 0) ->
    total h (averaged k (A ++ [[]])) = total h (averaged k A) + 0 * (n + l).
Proof.
  intros zero. unfold averaged. rewrite map_app, total_app. cbn [map]. rewrite total_cons.
  rewrite zero; [cbn; ring | intros; cbn; ring | cbn; ring].
Qed.

Lemma without_empty_group L s A n l :
  moved L s (of_groups k (A ++ [[]]) n l) -> moved L s (of_groups k A n l).
Proof.
  intros (one & two & three).
  assert (forall h, (forall r, (forall i, x r i = 0) -> y r = 0 -> h r = 0) ->
    total h (averaged k A) = total h (averaged k (A ++ [[]]))) as same.
  { intros h zero. rewrite (empty_group_adds_nothing A 0 0 h zero). ring. }
  split; [| split].
  - eapply Rle_trans; [| exact one]. apply Req_le. apply below_ext. intros i _. apply below_ext.
    intros j _. do 2 f_equal.
    apply same. intros r zero _. rewrite zero. ring.
  - eapply Rle_trans; [| exact two]. apply Req_le. apply (size_ext (seq 0 d)). intros i. f_equal.
    apply same. intros r _ zero. rewrite zero. ring.
  - eapply Rle_trans; [| exact three]. apply Req_le. do 2 f_equal. apply same. intros r _ zero.
    rewrite zero. ring.
Qed.

Lemma exchange_moves before r r' after G G' n n' l l' :
  (forall s, In s (before ++ r :: after) \/ In s (before ++ r' :: after) -> legal d X Y s) ->
  dealt k (before ++ r :: after) G -> dealt k (before ++ r' :: after) G' ->
  moved (4 * (INR k - 1) / INR k) (of_groups k G n l) (of_groups k G' n' l').
Proof.
  intros lawful deal deal'. assert (0 < INR k) as pos by (apply lt_0_INR; lia).
  destruct (dealt_exchange k ltac:(lia) _ G before r after deal eq_refl)
    as (A & B & left & right & -> & fits & inside & again).
  rewrite (dealt_unique k ltac:(lia) _ _ _ deal' (again r')). apply group_moves.
  replace (INR k * (4 * (INR k - 1) / INR k)) with (4 * (INR k - 1)) by (field; lra).
  apply group_exchange; [exact radius | exact bound | exact several | exact fits | | |].
  - intros s member. apply lawful. left. specialize (inside s member). rewrite in_app_iff in *. cbn.
    tauto.
  - apply lawful. left. apply in_or_app. right. apply in_eq.
  - apply lawful. right. apply in_or_app. right. apply in_eq.
Qed.

Lemma loss_moves before r G G' n n' l l' :
  (forall s, In s (before ++ [r]) -> legal d X Y s) -> dealt k (before ++ [r]) G ->
    dealt k before G' ->
  moved ((2 * (INR k - 1) + 1) / INR k) (of_groups k G n l) (of_groups k G' n' l').
Proof.
  intros lawful deal deal'. assert (0 < INR k) as pos by (apply lt_0_INR; lia).
  destruct (dealt_loss k ltac:(lia) _ G before r deal eq_refl) as (A & g & ->
    & fits & inside & again).
  assert (moved ((2 * (INR k - 1) + 1) / INR k) (of_groups k (A ++ [g ++ [r]]) n l)
    (of_groups k (A ++ [g]) n' l')) as moves.
  { apply group_moves. replace (INR k * ((2 * (INR k - 1) + 1) / INR k)) with (2 * (INR k - 1) + 1)
      by (field; lra).
    apply group_loss; [exact radius | exact bound | lia | exact fits | |].
    - intros s member. apply lawful. apply in_or_app. auto.
    - apply lawful. apply in_or_app. right. apply in_eq. }
  destruct again as [[-> again] | again]; rewrite (dealt_unique k ltac:(lia) _ _ _ deal' again);
    [| exact moves].
  now apply without_empty_group.
Qed.

Lemma coupled_moves rel o o' G G' n n' l l' :
  coupled rel o o' -> (forall r, In r o \/ In r o' -> legal d X Y r) -> dealt k o G ->
    dealt k o' G' ->
  moved (lever reals rel (INR k)) (of_groups k G n l) (of_groups k G' n' l').
Proof.
  intros couple lawful deal deal'. pose proof (le_INR _ _ several) as many. cbn in many.
  assert (forall L s s', 0 <= L -> moved 0 s s' -> moved L s s') as more.
  { intros L s s' nonneg (one & two & three). assert (0 < X * X /\ 0 < X * Y /\ 0 < Y * Y)
      as (? & ? & ?) by nra.
    rewrite !Rmult_0_l in *. rewrite Rsqr_0 in one. split; [| split].
    - eapply Rle_trans; [exact one | apply Rle_0_sqr].
    - nra.
    - nra. }
  unfold lever. cbn [at_most whole reals]. destruct (Rle_dec (INR k) 1) as [never | _]; [lra |].
  destruct couple as [before r r' after | before r after last | before r];
    cbn [plus minus times over whole reals].
  - now apply (exchange_moves before r r' after).
  - destruct (every_order_is_dealt k ltac:(lia) (before ++ last :: after ++ [last]))
      as [middle deal''].
    replace ((6 * INR k - 5) / INR k) with (4 * (INR k - 1) / INR k + (2 * (INR k - 1) + 1) / INR k)
      by (field; lra).
    apply (moved_through _ _ _ (of_groups k middle n l)).
    + apply Rmult_le_pos; [lra |]. left. apply Rinv_0_lt_compat. lra.
    + apply Rmult_le_pos; [lra |]. left. apply Rinv_0_lt_compat. lra.
    + apply (exchange_moves before r last (after ++ [last])); [| exact deal | exact deal''].
      intros s [member | member]; apply lawful; [now left |]. rewrite !in_app_iff in *. cbn in *.
      rewrite !in_app_iff in *. cbn in *. tauto.
    + apply (loss_moves (before ++ last :: after) last); [| now rewrite <- app_assoc | exact deal'].
      intros s member. apply lawful. rewrite !in_app_iff in *. cbn in *. rewrite !in_app_iff in *.
      cbn in *. tauto.
  - replace ((6 * INR k - 5) / INR k) with ((2 * (INR k - 1) + 1) / INR k + 4 * (INR k - 1) / INR k)
      by (field; lra).
    apply (moved_through _ _ _ (of_groups k G' n' l')).
    + apply Rmult_le_pos; [lra |]. left. apply Rinv_0_lt_compat. lra.
    + apply Rmult_le_pos; [lra |]. left. apply Rinv_0_lt_compat. lra.
    + apply (loss_moves before r); [| exact deal | exact deal']. intros s member. apply lawful.
      now left.
    + apply more; [apply Rmult_le_pos; [lra |]; left; apply Rinv_0_lt_compat; lra |].
      split; [| split].
      * unfold frobenius. rewrite !Rmult_0_l, Rsqr_0. apply Req_le. unfold below.
        rewrite <- (total_zero (seq 0 d)). apply total_ext.
        intros i _. rewrite <- (total_zero (seq 0 d)). apply total_ext. intros j _. unfold Rsqr.
        ring.
      * rewrite !Rmult_0_l. apply Req_le. rewrite <- sqrt_0. unfold norm. f_equal.
        unfold dot, below.
        rewrite <- (total_zero (seq 0 d)). apply total_ext. intros i _. ring.
      * rewrite Rminus_diag_eq by reflexivity. rewrite Rabs_R0, Rmult_0_l. apply Rle_refl.
Qed.

(** * All parts *)

Lemma unit_dot u : norm d u = 1 -> dot d u u = 1.
Proof. intros unit. unfold norm in unit. rewrite <- (sqrt_sqrt _ (dot_nonneg d u)), unit. lra. Qed.

Lemma quadratic_frobenius M u : norm d u = 1 -> Rsqr (quadratic d M u) <= frobenius d M.
Proof.
  intros unit. rewrite frobenius_is_size.
  assert (quadratic d M u
    = total (fun ij => M (fst ij) (snd ij) * (u (fst ij) * u (snd ij)))
      (list_prod (seq 0 d) (seq 0 d))) as ->.
  { rewrite total_pairs. unfold quadratic,
      below. apply total_ext. intros i _. apply total_ext. intros j _. cbn. ring. }
  assert (total (fun ij => u (fst ij) * u (snd ij) * (u (fst ij) * u (snd ij)))
    (list_prod (seq 0 d) (seq 0 d)) = 1) as one.
  { transitivity (dot d u u * dot d u u); [| rewrite unit_dot
      by exact unit; ring]. rewrite total_pairs.
    unfold dot, below. rewrite total_mult. apply total_ext. intros i _. apply total_ext. intros j _.
    cbn. ring. }
  pose proof (cauchy_schwarz (fun ij => M (fst ij) (snd ij)) (fun ij => u (fst ij) * u (snd ij))
    (list_prod (seq 0 d) (seq 0 d))) as cauchy.
  cbv beta in cauchy. rewrite one, Rmult_1_r in cauchy. exact cauchy.
Qed.

Lemma averaged_bound rel (p : weights reals) o o' G G' l l' :
  coupled rel o o' -> (forall r, In r o \/ In r o' -> legal d X Y r) -> dealt k o G ->
    dealt k o' G' ->
  let s := of_groups k G (INR (length o)) l in
  let s' := of_groups k G' (INR (length o')) l' in
  (e p <> 0 -> solved d X s /\ solved d X s') ->
  change d p s s' <= sqrt (sensitivity_squared reals rel (INR k) X Y p).
Proof.
  intros couple lawful deal deal' s s' eigenvalues. apply sqrt_le_1_alt.
  pose proof (coupled_moves rel o o' G G' (INR (length o)) (INR (length o')) l l' couple lawful deal
    deal') as moves.
  fold s s' in moves. pose proof (le_INR _ _ several) as many. cbn in many.
  assert (1 <= lever reals rel (INR k)) as leverage.
  { unfold lever. cbn [at_most whole reals]. destruct (Rle_dec (INR k) 1) as [never | _]; [lra |].
    destruct rel; cbn [plus minus times over whole reals];
      (apply Rmult_le_reg_r with (INR k); [lra |]; unfold Rdiv; rewrite Rmult_assoc, Rinv_l; lra). }
  set (L := lever reals rel (INR k)) in *. change (number reals) with R in L.
  destruct moves as (one & two & three).
  assert (0 < X * X /\ 0 < X * Y /\ 0 < Y * Y) as (? & ? & ?) by nra.
  assert (three_parts d p s s'
    <= Rsqr (X * X) * (L * L * longest reals (w p * Y / X) (v p * (Y * Y) / (X * X)))) as main.
  { apply Rle_trans
      with (Rsqr (L * (X * X)) + Rsqr (w p) * Rsqr (L * (X * Y)) + Rsqr (v p) * Rsqr (L * (Y * Y))).
    - apply Rplus_le_compat; [apply Rplus_le_compat; [exact one |] |].
      + apply Rmult_le_compat_l; [apply Rle_0_sqr |]. apply norm_le in two; [exact two |].
        apply Rmult_le_pos; lra.
      + apply Rmult_le_compat_l; [apply Rle_0_sqr |]. apply Rsqr_le_abs_1.
        rewrite (Rabs_right (L * (Y * Y))); [exact three |]. apply Rle_ge, Rmult_le_pos; lra.
    - apply Req_le. unfold longest, Rsqr. cbn. field. lra. }
  set (n := match rel with ReplaceOne => 0 | AddRemove => 1 end).
  assert (Rsqr (count s - count s') <= n) as counted.
  { cbn. unfold n. destruct couple; rewrite ?app_length; cbn [length]; rewrite ?app_length;
      cbn [length].
    - unfold Rsqr. lra.
    - rewrite !plus_INR, !S_INR, !plus_INR. cbn. unfold Rsqr. lra.
    - rewrite plus_INR. cbn. unfold Rsqr. lra. }
  eapply Rle_trans.
  { apply (parts_together d p s s' _ n (X * X * (L * (1 + 1 / 512))) main counted). intros
      published.
    destruct (eigenvalues published) as [here there].
    pose proof (solved_near d X s s' (L * (X * X)) here there) as near.
    eapply Rle_trans; [apply near |].
    - intros u unit. rewrite quadratic_minus.
      rewrite <- (Rabs_right (L * (X * X))) by (apply Rle_ge, Rmult_le_pos; lra).
      apply Rsqr_le_abs_0. eapply Rle_trans; [now apply quadratic_frobenius | exact one].
    - assert (1 * (X * X / 512) <= L * (X * X / 512)) by (apply Rmult_le_compat_r; lra). lra. }
  unfold sensitivity_squared, rows_squared, eigenvalue_slack. fold L. cbn [at_most whole reals].
  destruct (Rle_dec (INR k) 1) as [never | _]; [lra |].
  unfold n, square. destruct rel; fold L; cbn [plus times over whole reals]; apply Req_le;
    unfold Rsqr; ring.
Qed.
End Averages.

(** * Every order has its partner *)

Lemma coupling_of_orders rel D D' o :
  neighbours rel D D' -> (rel = AddRemove -> length D' < length D)%nat -> Permutation D o ->
  exists o', Permutation D' o' /\ coupled rel o o'.
Proof.
  intros near larger order. destruct rel.
  - destruct near as (a & a' & rest & one & other).
    assert (In a o) as member.
    { apply (Permutation_in a order), (Permutation_in a (Permutation_sym one)), in_eq. }
    apply in_split in member as (before & after & ->). exists (before ++ a' :: after).
    split; [| constructor].
    apply (Permutation_trans other). apply Permutation_cons_app.
    apply (Permutation_cons_inv (a := a)). apply (Permutation_trans (Permutation_sym one)).
    apply (Permutation_trans order), Permutation_sym, Permutation_middle.
  - destruct near as [a [more | less]].
    2: { apply Permutation_length in less. specialize (larger eq_refl). cbn in less. lia. }
    assert (In a o) as member.
    { apply (Permutation_in a order), (Permutation_in a (Permutation_sym more)), in_eq. }
    apply in_split in member as (before & after & ->).
    assert (Permutation D' (before ++ after)) as rest.
    { apply (Permutation_cons_inv (a := a)). apply (Permutation_trans (Permutation_sym more)).
      apply (Permutation_trans order), Permutation_sym, Permutation_middle. }
    destruct after as [| s after];
      [exists before; rewrite app_nil_r in rest; split; [exact rest | constructor] |].
    destruct (exists_last (l := s :: after)) as (front & last & back); [discriminate |].
    rewrite back in *.
    exists (before ++ last :: front). split; [| constructor].
    apply (Permutation_trans rest). apply Permutation_app_head.
    apply Permutation_sym, Permutation_cons_append.
Qed.
